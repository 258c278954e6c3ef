export { processAwakeWords } from './awake-threads.js'
export { callListener } from './call-listener.js'
export { RealClock } from './clock.js'
export { CLOSED_BY_PEER, CLOSED_BY_SELF, linkClosedError } from './link-errors.js'
export { type MemoryLinkOptions, memoryLinkPair } from './memory-link.js'
export { type MessagePortLinkOptions, messagePortLink } from './message-port-link.js'
export { align8, isMovable } from './post.js'
export { Session, type SessionOptions } from './session.js'
export { type SessionHead, SessionKind, sessionHead, sessionPayload } from './session-frame.js'
export { StayAwake } from './stay-awake.js'
export {
  type GroupMember,
  type GroupOptions,
  type JoinOptions,
  joinMembers,
  leaveMembers,
  type MemberEvent,
  members,
} from './store/members.js'
export { type Rendezvous, type RendezvousMember, type RendezvousOptions, rendezvous } from './store/rendezvous.js'
export { STORE_TIMEOUT_MS } from './store/store.js'
export { storeCancelled, storeTimeout } from './store/store-errors.js'
export { type StoreLimits, StoreServer, type StoreServerOptions } from './store/store-server.js'
export { TcpStore, type TcpStoreOptions } from './store/tcp-store.js'
