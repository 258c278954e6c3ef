/** Common parts of the tests of chains. */
import { type Tensor, withDevice } from '../index.js'
import { Storage, withChainsFrom, withHeapFrom, withHeapLimit } from '../internal.js'

/** Runs `fn`, in which tensors of any size become chains. */
export const small = <T>(fn: () => T): T => withChainsFrom(1, fn)

/** Where the tensors of a test lie. */
export const PLACES: Readonly<Record<string, <T>(fn: () => T) => T>> = {
  'managed memory': (fn) => withHeapLimit(0, fn),
  'the heap': (fn) => withHeapFrom(1, fn),
  'the device js': (fn) => withDevice('js', fn),
}

/** The bytes, with one kind of NaN. To compare numbers would take longer than to compute them. */
export const seen = (xs: readonly unknown[]) =>
  (xs as Tensor[]).map((x) => {
    if (x.isClosed) return 'closed'
    const values = x.dataSync()
    for (let i = 0; i < values.length; i++) if (Number.isNaN(values[i])) values[i] = Number.NaN
    return `${x.dtype} [${x.shape}] ${Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('latin1')}`
  })

/** How many steps a call records. */
export function stepsOf(fn: () => unknown): number {
  const { awaiting } = Storage
  let steps = 0
  Storage.awaiting = (...args) => {
    steps++
    return awaiting.apply(Storage, args)
  }
  try {
    fn()
  } finally {
    Storage.awaiting = awaiting
  }
  return steps
}

/** How many results each pass over memory writes. */
export function passesOf(fn: () => unknown): number[] {
  const { uninitialized } = Storage
  const { receive } = Storage.prototype
  const passes: number[] = []
  let last: 'made' | 'received' = 'received'
  Storage.uninitialized = (...args) => {
    if (last === 'received') passes.push(0)
    last = 'made'
    return uninitialized.apply(Storage, args)
  }
  Storage.prototype.receive = function (other) {
    last = 'received'
    passes[passes.length - 1]!++
    receive.call(this, other)
  }
  try {
    fn()
  } finally {
    Storage.uninitialized = uninitialized
    Storage.prototype.receive = receive
  }
  return passes
}
