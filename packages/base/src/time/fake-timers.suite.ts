/** Fakes timers as test runners do, for tests of all packages: CLK-3, CLU-101. */

/** Replaces the timers of the global object by some that never fire. `nextTick` stays, since Node itself uses it. @returns a function that puts the real ones back */
export function fakeTimers(): () => void {
  const world = globalThis as unknown as Record<string, unknown>
  const names = ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask']
  const real = names.map((name) => world[name])
  for (const name of names) world[name] = () => ({ ref() {}, unref() {} })
  return () =>
    names.forEach((name, i) => {
      world[name] = real[i]
    })
}
