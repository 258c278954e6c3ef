export { Codec, type CodecOptions, WIRE_VERSION } from './codec.js'
export { isError, type RemoteErrorInfo } from './error-codec.js'
export type { ValueExtension } from './extension.js'
export { DEFAULT_LIMITS, type WireLimits } from './limits.js'
export { type Message, OutgoingMessage } from './message.js'
export {
  type FieldKind,
  type FieldSpec,
  MESSAGE_TABLE,
  type MessageBodies,
  MessageLane,
  type MessageSpec,
  MessageType,
} from './message-type.js'
export { INLINE_BYTES_MAX } from './tensor-codec.js'
