/**
 * Runs a user's kernel as a JavaScript function, for `gpujs/user-kernels.ts`: in float64, which no mode of gpu.js has, and to try its reads before
 * gpu.js compiles it, which reads NaN or 0 outside of an input, without an error.
 */

import { PostgradError } from '@postgrad/base'
import { now } from '@postgrad/base/internal'
import type { UserKernel } from '../table/operands.js'

type Numbers = Float32Array | Float64Array
type Args = readonly (Numbers | number)[]
type Constants = Readonly<Record<string, number>>
interface KernelThread {
  readonly thread: { x: number; readonly y: 0; readonly z: 0 }
  readonly constants: Constants
  readonly output: { readonly x: number; readonly y: 1; readonly z: 1 }
}
type Read = (index: number) => number
type Body = (this: KernelThread, ...args: (Read | number)[]) => unknown

/** How much is tried of a kernel of a new size: so many threads, with so many reads. All of a small one, the ends and a sample of a large one. */
const TRIED_THREADS = 1024
const TRIED_READS = 2 ** 16
/** For kernels that compute long with few reads. */
const TRIED_MS = 50

/** Ends a trial that has read enough. */
const ENOUGH = Symbol('enough')

const bodies = new WeakMap<UserKernel, Body | null>()

/** All threads, in double precision. @throws KERNEL_COMPILE, KERNEL_RESULT, KERNEL_OUT_OF_RANGE */
export function runPlain(kernel: UserKernel, constants: Constants, args: Args, out: Float64Array): void {
  const { name } = kernel
  const n = out.length
  try {
    const missing = /this\s*\.\s*constants\s*\.\s*(\w+)/g
    for (const [, constant] of kernel.source.matchAll(missing)) {
      if (!Object.hasOwn(constants, constant!)) throw new ReferenceError(`constant "${constant}" is not given`)
    }
    const body = bodyOf(kernel)
    if (body === null) throw new SyntaxError('its inputs may only be read, as in x[i]')
    const self = threadOf(n, constants)
    const given = readers(kernel, args, self, Number.POSITIVE_INFINITY)
    for (let i = 0; i < n; i++) {
      self.thread.x = i
      const value = body.apply(self, given)
      if (typeof value !== 'number') throw noNumber(name, n, Array.isArray(value) ? `${value.length} numbers` : typeof value)
      out[i] = value
    }
  } catch (cause) {
    if (cause instanceof PostgradError) throw cause
    throw new PostgradError('KERNEL_COMPILE', {
      op: name,
      message: `this kernel does not run as JavaScript, which is how float64 is computed: ${String((cause as Error | null)?.message ?? cause)}`,
      remedy: 'Write it in the part of JavaScript that gpu.js compiles (no closures, arrays or objects of its own; one number returned).',
      values: { reason: String((cause as Error | null)?.message ?? cause) },
      cause,
    })
  }
}

/**
 * Runs threads for their reads alone. gpu.js reports other errors in its own words. A text that does more with an input than read its elements is
 * not tried. @throws KERNEL_OUT_OF_RANGE
 */
export function tryReads(kernel: UserKernel, n: number, constants: Constants, args: Args): void {
  try {
    const body = bodyOf(kernel)
    if (body === null) return
    const self = threadOf(n, constants)
    const given = readers(kernel, args, self, TRIED_READS)
    const end = now() + TRIED_MS
    for (const thread of sample(n)) {
      self.thread.x = thread
      body.apply(self, given)
      if (now() > end) return
    }
  } catch (error) {
    if (error instanceof PostgradError) throw error
  }
}

/** The first and the last threads alternately, then some evenly between. */
function* sample(n: number): Iterable<number> {
  if (n <= TRIED_THREADS) {
    for (let i = 0; i < n; i++) yield i
    return
  }
  const ends = TRIED_THREADS / 4
  for (let i = 0; i < ends; i++) {
    yield i
    yield n - 1 - i
  }
  const step = n / (TRIED_THREADS - 2 * ends)
  for (let at = step / 2; at < n; at += step) yield Math.floor(at)
}

function threadOf(n: number, constants: Constants): KernelThread {
  return { thread: { x: 0, y: 0, z: 0 }, constants, output: { x: n, y: 1, z: 1 } }
}

/** The arguments as the body takes them: arrays as functions that check each index. */
function readers({ name, inputs }: UserKernel, args: Args, self: KernelThread, most: number): (Read | number)[] {
  let reads = 0
  return args.map((array, i) => {
    if (typeof array === 'number') return array
    return (index) => {
      if (++reads > most) throw ENOUGH
      if (Number.isInteger(index) && index >= 0 && index < array.length) return array[index]!
      throw outOfRange(name, inputs[i]!, index, array.length, self.thread.x)
    }
  })
}

/** The text with its reads as calls; null for one whose inputs are not only read. @throws SyntaxError */
function bodyOf(kernel: UserKernel): Body | null {
  let body = bodies.get(kernel)
  if (body === undefined) {
    const text = readsAsCalls(kernel)
    body = text === null ? null : (new Function(`return (${text})`)() as Body)
    bodies.set(kernel, body)
  }
  return body
}

/** `x[i + 1]` → `x(i + 1)` for each input. */
function readsAsCalls({ source, inputs }: UserKernel): string | null {
  const code = withoutComments(source)
  const open = code.indexOf('{')
  let out = code.slice(0, open)
  const closing: string[] = []
  for (let i = open; i < code.length; ) {
    const word = /^[A-Za-z_$][\w$]*/.exec(code.slice(i, i + 100))?.[0]
    if (word !== undefined) {
      const isInput = inputs.includes(word) && !/\.\s*$/.test(out.slice(-20))
      const bracket = isInput ? /^\s*\[/.exec(code.slice(i + word.length)) : null
      if (isInput && bracket === null) return null
      out += word
      i += word.length
      if (bracket !== null) {
        out += '('
        closing.push(')')
        i += bracket[0].length
      }
      continue
    }
    const c = code[i++]!
    if (c === '"' || c === "'" || c === '`') return null
    if (c === '[') closing.push(']')
    out += c === ']' ? (closing.pop() ?? ']') : c
  }
  return out
}

/** The first input that the text indexes twice in a row, as in `x[i][j]`. */
export function indexedTwice({ source, inputs }: Pick<UserKernel, 'source' | 'inputs'>): string | undefined {
  const code = withoutComments(source)
  return inputs.find((input) => {
    for (const { index, 0: start } of code.matchAll(new RegExp(`(?<![.\\w$])${input.replaceAll('$', '\\$')}\\s*\\[`, 'g'))) {
      let depth = 1
      let i = index + start.length
      for (; i < code.length && depth > 0; i++) depth += code[i] === '[' ? 1 : code[i] === ']' ? -1 : 0
      if (/^\s*\[/.test(code.slice(i))) return true
    }
    return false
  })
}

export function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
}

function outOfRange(op: string, argument: string, index: unknown, length: number, thread: number): PostgradError {
  const range = length === 0 ? `no read of ${argument}, which has no elements` : `reads of ${argument}[0] … ${argument}[${length - 1}]`
  return new PostgradError('KERNEL_OUT_OF_RANGE', {
    op,
    expected: range,
    got: `${argument}[${String(index)}] in thread ${thread}`,
    remedy:
      typeof index === 'number' && index % 1 !== 0 && Number.isFinite(index)
        ? 'Make an index whole with Math.floor().'
        : `Read only where there is something: i > 0 ? ${argument}[i - 1] : 0. Inputs are flat and row-major: ${argument}[row * columns + column].`,
    values: { argument, index: String(index), length, thread },
  })
}

export function noNumber(op: string, n: number, got: string): PostgradError {
  return new PostgradError('KERNEL_RESULT', {
    op,
    expected: `one number from each of ${n} threads`,
    got,
    remedy: 'Return one number: each thread computes one element of the result.',
  })
}
