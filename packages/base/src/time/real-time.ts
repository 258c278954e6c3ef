/**
 * The timers, ticks and clock of this thread, taken when the library is loaded. A test that fakes those of the global object (jest, vitest, sinon) does not stop postgrad's: a
 * cluster of threads lives in real time. A simulation has a clock of its own. Nothing else in the library takes them from the global object; biome.json holds that.
 */
import { runInThisContext } from 'node:vm'

// The thread's own global object. A test file of jest has another, which may be faked before that file loads anything.
const thread: typeof globalThis = runInThisContext('globalThis')

// As values: a fake clock changes the properties, which a bundle would read at each call.
export const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, queueMicrotask } = thread
export const { nextTick, hrtime } = thread.process

/** Milliseconds since this thread began, and when that was. */
export const now: () => number = thread.performance.now.bind(thread.performance)
export const { timeOrigin: timeOriginMs } = thread.performance
/** Milliseconds since 1970. */
export const wallMs: () => number = thread.Date.now

// A fake clock leaves itself with what it has put in place.
if ('clock' in setImmediate || 'clock' in nextTick) {
  const message =
    'postgrad was loaded while a test faked the timers: simulations and clusters wait for ever. Import postgrad before the timers are faked.'
  // `emitWarning` would wait for a tick, which does not come.
  process.emit('warning', Object.assign(new Error(message), { name: 'Warning', code: 'POSTGRAD_FAKE_TIMERS' }))
}
