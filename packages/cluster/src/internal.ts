/** For sibling packages: the membership of a cluster, on any kind of host, the main of a program, and the port of rank 0. */
export { importMain } from './admin/program.js'
export { GroupLog } from './init/group-log.js'
export { masterPort } from './init/init-method.js'
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
export { checkNames, type OptionNames } from './options/check-options.js'
