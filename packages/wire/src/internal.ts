export type { BlockName, BlockTransport } from './block-transport.js'
export { Codec, SentFailure } from './codec.js'
export type { RemoteErrorInfo } from './error-codec.js'
export { type PassHead, passHead, type RequestHead, requestHead, WIRE_VERSION } from './head.js'
export { type Message, OutgoingMessage, type Part } from './message.js'
export { type MessageOutline, messageOutline } from './message-outline.js'
export { MESSAGE_TABLE, type MessageBodies, type MessageName, MessageType } from './message-type.js'
export { type Payload, PayloadCodec, transferables } from './payload.js'
export type { travels } from './sendable.js'
export {
  anomalyOf,
  type CallHeaders,
  chainOf,
  type HeaderValue,
  headersOf,
  isHeaderValue,
  isWatched,
  setAnomaly,
  setChain,
  setHeaders,
  setWatched,
} from './trace-field.js'
export type { ValueExtension } from './value-tag.js'
