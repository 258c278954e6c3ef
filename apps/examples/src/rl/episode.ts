/** Messages between the main thread and the agent. */

export interface Team {
  readonly observers: readonly string[]
  readonly seed: number
}

export interface Episode {
  /** Of each observer that has finished it. */
  readonly rewards: readonly number[]
  /** Observers that have died in it. */
  readonly lost: readonly string[]
}
