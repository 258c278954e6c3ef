export type { RemoteErrorInfo } from './error-codec.js'
