export { type Clock, RealClock, type Timer } from './clock.js'
export type { Frame, Link, LinkClosed, LinkReceiver } from './link.js'
export { type MemoryLinkOptions, memoryLinkPair } from './memory-link.js'
export { type MessagePortLinkOptions, messagePortLink } from './message-port-link.js'
