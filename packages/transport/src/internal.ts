export { Allowance } from './allowance.js'
export { Arrivals } from './arrivals.js'
export { oneOfSeveral, processAwakeWords } from './awake-threads.js'
export { Budget, type Holder, NOBODY, type OverBudget, type Share } from './budget.js'
export { callListener, NEVER, NODE_DELAY_MS_MAX, RealClock, setDeadline } from './clock.js'
export { ForwardingLink } from './forwarding-link.js'
export { EVERY_ORDER, FRAME_KEPT_BYTES, frameOrder, NO_ORDER, staysBehind } from './link.js'
export { CLOSED_BY_PEER, CLOSED_BY_SELF, linkClosedError } from './link-errors.js'
export { type MemoryLinkOptions, memoryLinkPair } from './memory-link.js'
export { type MessagePortLinkOptions, messagePortLink } from './message-port-link.js'
export { align8, isLargeSegment, isMovable, SEGMENT_MOVED_BYTES_MIN } from './post.js'
export { Session } from './session/session.js'
export { type SessionHead, SessionKind, sessionFrame, sessionHead, sessionPayload } from './session/session-frame.js'
export type { SessionOptions } from './session/session-options.js'
export {
  type Address,
  checkAddress,
  formatAddress,
  isLocal,
  isLoopback,
  parseAddress,
  type TcpAddress,
  type UnixAddress,
} from './socket/address.js'
export { type CertificateIdentity, tlsIdentity } from './socket/certificate.js'
export { BATCH_BYTES_MAX, ChunkType, controlChunk, DATA_BYTES_MAX, HEAD_BYTES } from './socket/chunk.js'
export { ChunkReader, ControlChunk } from './socket/chunk-reader.js'
export {
  type Credentials,
  checkCredentials,
  DEFAULT_ROLE,
  type Identity,
  isClusterName,
  isRole,
  isWorkerName,
  type KeyCredentials,
  requireCredentials,
  type TlsCredentials,
} from './socket/credentials.js'
export { type DialedService, Exchange, type ExchangeOptions, type ServiceDialOptions } from './socket/exchange.js'
export { Handshake, type HandshakeOptions, type HandshakeSide, type HandshakeStep, RELEASE } from './socket/handshake.js'
export { HANDSHAKE_BYTES_MAX, PROTOCOL_VERSION } from './socket/handshake-messages.js'
export { formatKeyFile, generateKey, parseKeyFile, readKeyFile } from './socket/key-file.js'
export type { ListenAddress } from './socket/listener.js'
export { type Addresses, isUnreached, type PeerHealth, type PeerName } from './socket/peer-link.js'
export { SOCKET_LIMITS, type SocketLimits } from './socket/socket-limits.js'
export { type SocketEnd, SocketLink, type SocketLinkOptions } from './socket/socket-link.js'
export { StayAwake } from './stay-awake.js'
export { FileLock, isLockLeft } from './store/file-lock.js'
export { STORE_TIMEOUT_MS } from './store/store.js'
export { storeCancelled, storeTimeout } from './store/store-errors.js'
export { decodeReply, encodeFrame } from './store/store-protocol.js'
export { type GuardedRequest, type StoreGuard, type StoreLimits, StoreServer, type StoreServerOptions } from './store/store-server.js'
export { TcpStore, type TcpStoreOptions } from './store/tcp-store.js'
