/** Checks every kind of run before it begins: wrong options and a missing body are errors of the caller, not failed runs that could be repeated. */
import { PostgradError } from '@postgrad/base'

/** @throws INVALID_ARGUMENT */
export function checkRun(op: string, options: { readonly workers?: unknown; readonly seed?: unknown }, body: unknown): void {
  if (typeof options !== 'object' || options === null) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op,
      expected: 'options with workers',
      got: String(options),
      remedy: "At least { workers: ['worker0', 'worker1'] }, or a count.",
    })
  }
  const { seed = 0 } = options
  if (!Number.isSafeInteger(seed)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op,
      expected: 'a seed that is a whole number',
      got: typeof seed === 'string' ? `'${seed}'` : String(seed),
      remedy: 'Count seeds from 0; what comes from the command line goes through Number().',
    })
  }
  if (typeof body === 'function') return
  throw new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'a body: (sim) => Promise',
    got: String(body),
    remedy:
      'Pass a function. A program in a module of its own is run by simulateProgram({ program, export }, options) and exploreProgram({ program, export, ...options }).',
  })
}
