/**
 * How a package above teaches a codec a value of its own (rpc: RRef), so that `wire` need not know it.
 */
export interface ValueExtension {
  /** 0x20 to 0x3f, one per extension, the same on all workers. */
  readonly tag: number
  /** Asked for objects that are neither arrays, plain objects nor tensors. */
  matches(value: object): boolean
  /** Returns any value that can be sent, to send instead. `env` is the one that `prepare` got. */
  encode(value: object, env: unknown): unknown
  /** The value again. `plain` comes from another worker: check it. `env` is what was given to `decode`. */
  decode(plain: unknown, env: unknown): unknown
}
