/** For sibling packages: the membership of a cluster, whoever its workers are, and the main of a program. */
export { importMain } from './admin/program.js'
export { GroupLog } from './init/group-log.js'
export {
  type Change,
  type MemberControl,
  Members,
  type MembersHost,
  type MemberWords,
  type PeerEnd,
} from './membership/members.js'
export { PeerLinks } from './membership/peer-links.js'
export { type Birth, type Command, type Joined, type PeerInfo, Roster, type Standing } from './membership/roster.js'
