export type { RemoteErrorInfo } from './error-codec.js'
export type { WireLimits } from './limits.js'
