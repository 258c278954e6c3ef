/**
 * The stack of an expected failure, where postgrad is installed. Its frames begin at the line of the program: the operation is the first word of the message, and the frames of the
 * library in between say nothing to a user; there may be more of them than Node keeps. Between message and frames is the command that explains the code.
 */

const OWN = /[\\/]node_modules[\\/]postgrad[\\/]dist[\\/]/
/** Frames without a place, such as `new Promise (<anonymous>)` and `async Promise.all (index 0)`, and those of Node, lie between frames of postgrad. */
const NOBODYS = /\(?(?:<anonymous>|native|index \d+|node:[^()]*)\)?$/
const FRAMES_MAX = 64
const CODE = /^[A-Z][A-Z0-9_]{0,63}$/
const FRAME = '\n    at '

type Below = ((...args: never[]) => unknown) | (new (...args: never[]) => Error)

/** Whether this is the installed library: in the repository its own frames are what one looks for, and in a bundle of a user nobody knows them. */
export const IS_INSTALLED = typeof import.meta.url === 'string' && OWN.test(import.meta.url)

/** @param below its frame and those above it are of the making of the error */
export function beginAtProgram(error: Error & { readonly code?: unknown }, below: Below): void {
  try {
    const { stackTraceLimit } = Error
    let frames = framesOf(error)
    let first = firstOfProgram(frames)
    // Most programs are among the frames that Node keeps. To write down as many as we want costs five times as much as an error does otherwise.
    if (first < 0 && frames.length > 0 && frames.length >= stackTraceLimit) {
      frames = framesOf(withMoreFrames(below))
      first = firstOfProgram(frames)
    }
    // The program has made the error itself: it has no frame of postgrad, and its code is not explained.
    if (frames.length === 0 || first === 0) return
    const begin = Math.max(first, 0)
    const value = [`${error.name}: ${error.message}${explained(error)}`, ...frames.slice(begin, begin + stackTraceLimit)].join(FRAME)
    Object.defineProperty(error, 'stack', { value, writable: true, configurable: true })
  } catch {
    // A stackTraceLimit that cannot be set.
  }
}

/** Nothing for a code that may not be one: peers send errors, too. */
function explained({ code }: { readonly code?: unknown }): string {
  return typeof code === 'string' && CODE.test(code) ? `\n  More: npx postgrad explain ${code}` : ''
}

/** Where the frames of the program begin; 0: no frame of postgrad is above, -1: there are none of the program. */
export function firstOfProgram(frames: readonly string[]): number {
  return frames.findIndex((frame) => !OWN.test(frame) && !NOBODYS.test(frame))
}

/** A program may have an `Error.prepareStackTrace` of its own, which gives what it likes. */
function framesOf({ stack }: { readonly stack?: unknown }): readonly string[] {
  return typeof stack === 'string' ? stack.split(FRAME).slice(1) : []
}

function withMoreFrames(below: Below): { readonly stack?: unknown } {
  const { stackTraceLimit } = Error
  const holder: { stack?: unknown } = {}
  Error.stackTraceLimit = FRAMES_MAX
  try {
    Error.captureStackTrace(holder, below)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  return holder
}
