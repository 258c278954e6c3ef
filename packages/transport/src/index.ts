export type { Clock, Timer } from './clock.js'
export type { Frame, Link, LinkClosed, LinkReceiver } from './link.js'
