/**
 * The stack of an expected failure, where postgrad is installed: it begins at the line of the program. What the program called is the first word of the message, and the frames of the
 * library in between say nothing to a user; there may be more of them than Node keeps.
 */

const OWN = /[\\/]node_modules[\\/]postgrad[\\/]dist[\\/]/
/** Frames without a place, such as `new Promise (<anonymous>)` and `async Promise.all (index 0)`, and those of Node, lie between frames of postgrad. */
const NOBODYS = /\(?(?:<anonymous>|native|index \d+|node:[^()]*)\)?$/
const FRAMES_MAX = 64
const FRAME = '\n    at '

/** Whether this is the installed library: in the repository its own frames are what one looks for, and in a bundle of a user nobody knows them. */
export const IS_INSTALLED = typeof import.meta.url === 'string' && OWN.test(import.meta.url)

/** @param below its frame and those above it are of the making of the error */
export function beginAtProgram(error: Error, below: ((...args: never[]) => unknown) | (new (...args: never[]) => Error)): void {
  const { stackTraceLimit } = Error
  const holder: { stack?: unknown } = {}
  try {
    Error.stackTraceLimit = FRAMES_MAX
    try {
      Error.captureStackTrace(holder, below)
    } finally {
      Error.stackTraceLimit = stackTraceLimit
    }
    // A program may have an `Error.prepareStackTrace` of its own, which gives what it likes.
    if (typeof holder.stack !== 'string') return
    const frames = programFrames(holder.stack.split(FRAME).slice(1))
    if (frames === null) return
    const value = [`${error.name}: ${error.message}`, ...frames.slice(0, stackTraceLimit)].join(FRAME)
    Object.defineProperty(error, 'stack', { value, writable: true, configurable: true })
  } catch {
    // A stackTraceLimit that cannot be set.
  }
}

/** From the innermost frame of the program on; null: there is none, or no frame of postgrad before it. */
export function programFrames(frames: readonly string[]): readonly string[] | null {
  const first = frames.findIndex((frame) => !OWN.test(frame) && !NOBODYS.test(frame))
  return first <= 0 ? null : frames.slice(first)
}
