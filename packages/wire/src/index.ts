export type { RemoteErrorInfo } from './error-codec.js'
export type { CannotBeSent, Sendable, Travels } from './sendable.js'
