/**
 * x[spec, spec, …] as in Python: numbers, ranges, '...' and null make a view; tensors among them pick elements. PyTorch's rule: the dimensions
 * of the picked elements (those of all index tensors, broadcast) replace the indexed dimensions if these are neighbours, else they come first.
 * A 0-d int32 tensor is a number. After a mask of several dimensions, a number or range applies to the next dimension, as in NumPy;
 * PyTorch 1.13 applies it to an earlier one.
 */

import { checkedIndices, flatIndices } from '../../raw/indices.js'
import { checkReadable, elementsOf } from '../../tensor/bytes.js'
import { isTensor, type Tensor } from '../../tensor/tensor.js'
import { invalidArgument, shapeMismatch, shapeText } from '../../values/errors.js'
import type { IndexSpec } from '../../values/options.js'
import { broadcastShapes, numelOf, type Shape } from '../../values/shape.js'
import type { Ops } from '../define/define.js'

type Spec = IndexSpec<Tensor>

/** @throws INVALID_ARGUMENT, SHAPE_MISMATCH for too many specs or a mask of another shape, INDEX_OUT_OF_RANGE, DTYPE_MISMATCH */
export function indexBy(ops: Ops, x: Tensor, specs: readonly Spec[]): Tensor {
  const unnamed = x.ndim - specs.reduce<number>((n, spec) => n + dimsOf(spec), 0)
  if (unnamed < 0) {
    throw shapeMismatch('index', `specs for at most ${x.ndim} dimensions`, `specs for ${x.ndim - unnamed}`, 'Leave some out.')
  }
  if (specs.filter((spec) => spec === '...').length > 1) throw invalidArgument('index', "at most one '...'", 'several')
  let view = x
  let d = 0
  // The tensors, by the dimension of `view` that each one picks from.
  const picks: { readonly dim: number; readonly index: Tensor }[] = []
  for (const spec of specs) {
    if (spec === '...') d += unnamed
    else if (spec === null) view = ops.unsqueeze(view, d++)
    else if (typeof spec === 'number') view = ops.select(view, d, spec)
    else if (typeof spec === 'string') {
      const [start, end, step] = parseRange(spec)
      if (start !== null || end !== null || step !== 1) view = ops.slice(view, d, start, end, step)
      d++
    } else if (spec.dtype === 'bool') {
      checkMask(view, d, spec)
      const found = ops.nonzero(spec)
      for (let i = 0; i < spec.ndim; i++) picks.push({ dim: d++, index: ops.select(found, 1, i) })
    } else if (spec.ndim === 0) view = ops.select(view, d, numberOf(spec, view.shape[d]!))
    else picks.push({ dim: d++, index: spec })
  }
  return picks.length === 0 ? view : pick(ops, view, picks)
}

/** A 0-d index's value. */
function numberOf(index: Tensor, extent: number): number {
  checkReadable('index', index)
  return elementsOf(checkedIndices('index', index, extent, true))[0]!
}

function dimsOf(spec: Spec): number {
  if (spec === '...' || spec === null) return 0
  if (typeof spec === 'number' || typeof spec === 'string') return 1
  if (!isTensor(spec)) throw invalidArgument('index', "numbers, 'start:end:step', '...', null or tensors", typeof spec)
  return spec.dtype === 'bool' ? spec.ndim : 1
}

function checkMask(x: Tensor, d: number, mask: Tensor): void {
  if (mask.ndim > 0 && mask.shape.every((n, i) => n === x.shape[d + i])) return
  throw shapeMismatch(
    'index',
    mask.ndim === 0
      ? 'a mask with dimensions'
      : `a mask of the extents ${shapeText(x.shape.slice(d, d + mask.ndim))} of the dimensions that it masks`,
    shapeText(mask.shape),
    'A mask has the extents of the dimensions that it masks.',
  )
}

/** 'start:end:step' → numbers; null where there is none. */
function parseRange(text: string): readonly [start: number | null, end: number | null, step: number] {
  const match = /^\s*([+-]?\d+)?\s*:\s*([+-]?\d+)?\s*(?::\s*([+-]?\d+)?\s*)?$/.exec(text)
  if (match === null) {
    throw invalidArgument('index', "'start:end' or 'start:end:step' with integers that may be left out", `'${text}'`)
  }
  const [, start, end, step] = match
  return [start === undefined ? null : Number(start), end === undefined ? null : Number(end), step === undefined ? 1 : Number(step)]
}

function pick(ops: Ops, x: Tensor, picks: readonly { readonly dim: number; readonly index: Tensor }[]): Tensor {
  let shape: Shape = []
  for (const { index } of picks) shape = broadcastShapes('index', shape, index.shape)
  const dims = picks.map(({ dim }) => dim)
  const neighbours = dims.every((dim, i) => dim === dims[0]! + i)
  const from = neighbours ? x : ops.movedim(x, dims, [...dims.keys()])
  const first = neighbours ? dims[0]! : 0
  const before = from.shape.slice(0, first)
  const extents = from.shape.slice(first, first + dims.length)
  const behind = from.shape.slice(first + dims.length)
  const indices = flatIndices(
    'index',
    picks.map(({ index }) => index),
    extents,
    shape,
  )
  const flat = dims.length === 1 ? from : ops.reshape(from, [...before, numelOf(extents), ...behind])
  return ops.reshape(ops.indexSelect(flat, first, ops.reshape(indices, [indices.numel])), [...before, ...shape, ...behind])
}
