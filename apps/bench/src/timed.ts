/** Common to JavaScript contestants: they make data first, then time the work. */
import type { Contestant } from './row.js'

/** Seconds for doing `work` n times. */
export function timed(n: number, work: () => unknown): number {
  const started = performance.now()
  for (let i = 0; i < n; i++) work()
  return (performance.now() - started) / 1000
}

/** A contestant whose data are made when a row first asks: there are millions of numbers, and a run may want none of them. */
export function whenAsked(prepare: () => () => unknown): Contestant {
  let work: (() => unknown) | null = null
  return async (n) => {
    work ??= prepare()
    return timed(n, work)
  }
}

/** Numbers around 0, the same in every run (a multiplicative congruence). */
export function numbersOf(length: number): Float32Array {
  let state = 1
  return new Float32Array(length).map(() => {
    state = Math.imul(state, 48_271) & 0x7fffffff
    return state / 0x7fffffff - 0.5
  })
}
