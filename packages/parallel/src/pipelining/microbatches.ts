/**
 * A batch as micro-batches and back: any nesting of tensors in arrays and plain objects, each tensor divided along one dimension. Above: `pipeline.ts`. PyTorch:
 * `torch/distributed/pipelining/microbatch.py`.
 */
import { cat, noGrad, stack, tensorSplit } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { isTensor, type Tensor } from '@postgrad/tensor'

/**
 * How the tensors of a value are divided into micro-batches: a number is the dimension to divide; 'replicate' gives every micro-batch the whole tensor. One
 * spec holds for all tensors; an array or object with the structure of the value holds for its parts. Other values are never divided. PyTorch:
 * `TensorChunkSpec`, `_Replicate`.
 */
export type ChunkSpec = number | 'replicate' | readonly ChunkSpec[] | { readonly [key: string]: ChunkSpec }

/** The same structure with other tensors in it; `fn` also gets the part of the spec that is about it. */
function mapWith(value: unknown, spec: ChunkSpec, fn: (tensor: Tensor, spec: number | 'replicate') => unknown): unknown {
  const isLeaf = typeof spec !== 'object'
  const specOf = (key: string | number): ChunkSpec => (isLeaf ? spec : ((spec as { readonly [key: string]: ChunkSpec })[key] ?? 0))
  if (isTensor(value)) {
    if (isLeaf) return fn(value, spec)
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'Pipeline',
      expected: "a dimension or 'replicate' for each tensor",
      got: 'a structure',
      remedy: 'Give the spec the structure of the value.',
    })
  }
  if (Array.isArray(value)) return value.map((each, i) => mapWith(each, specOf(i), fn))
  if (isPlainObject(value)) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapWith(each, specOf(key), fn)]))
  return value
}

/** The same structure with other tensors in it. */
export function mapTensors(value: unknown, fn: (tensor: Tensor) => unknown): unknown {
  return mapWith(value, 0, fn)
}

/** The tensors of a structure, in order. */
export function tensorsIn(value: unknown): Tensor[] {
  const found: Tensor[] = []
  mapTensors(value, (tensor) => found.push(tensor))
  return found
}

/**
 * The parts of `value` for `count` micro-batches, their sizes as equal as may be, the larger ones first. Tensors are views.
 * @throws MICROBATCH_EMPTY where a dimension is too small, DIM_OUT_OF_RANGE
 */
export function splitBatch(value: unknown, count: number, spec: ChunkSpec = 0): unknown[] {
  const parts = new Map<Tensor, readonly Tensor[]>()
  mapWith(value, spec, (tensor, dim) => {
    if (dim === 'replicate' || parts.has(tensor)) return tensor
    const chunks = tensorSplit(tensor, count, dim)
    if (chunks.at(-1)!.shape.at(dim) === 0) {
      throw new PostgradError('MICROBATCH_EMPTY', {
        op: 'Pipeline.step',
        expected: `at least ${count} entries along dimension ${dim}, one for each micro-batch`,
        got: `shape [${tensor.shape.join(', ')}]`,
        remedy: "Pass a larger batch, take fewer micro-batches, or say 'replicate' for this tensor.",
        values: { shape: [...tensor.shape], dim, microbatches: count },
      })
    }
    parts.set(tensor, chunks)
    return tensor
  })
  return Array.from({ length: count }, (_, i) =>
    mapWith(value, spec, (tensor, dim) => (dim === 'replicate' ? tensor : parts.get(tensor)![i]!)),
  )
}

/** One value of those of all micro-batches: tensors put together along their dimension, those without one as a vector; of anything else, and of what is replicated, the first. */
export function mergeBatch(values: readonly unknown[], spec: ChunkSpec = 0): unknown {
  const tensors = values.map(tensorsIn)
  let place = 0
  return noGrad(() =>
    mapWith(values[0], spec, (tensor, dim) => {
      const parts = tensors.map((each) => each[place]!)
      place++
      if (dim === 'replicate') return tensor
      return tensor.ndim === 0 ? stack(parts) : cat(parts, dim)
    }),
  )
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  // By its tag and not by its constructor: what came over the wire may be of another realm.
  return typeof value === 'object' && value !== null && Object.prototype.toString.call(value) === '[object Object]' && !isInstance(value)
}

function isInstance(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype !== null && Object.getPrototypeOf(prototype) !== null
}
