/** What every contestant of this language does: its data made first, its work timed. */

/** Seconds for doing `work` n times. */
export function timed(n: number, work: () => unknown): number {
  const started = performance.now()
  for (let i = 0; i < n; i++) work()
  return (performance.now() - started) / 1000
}

/** Numbers around 0, the same in every run (a multiplicative congruence). */
export function numbersOf(length: number): Float32Array {
  let state = 1
  return Float32Array.from({ length }, () => {
    state = Math.imul(state, 48_271) & 0x7fffffff
    return state / 0x7fffffff - 0.5
  })
}
