/**
 * In-place operations, for `operations.ts`. If nothing is recorded (no argument requires grad, or noGrad, as in optimizers) they are the raw
 * ones. Else the recorded operation of that name computes the value from a copy of the old one. The tensor gets the value, and the tensor or, for a
 * view, its base gets the history (Note [Views and writes] in `views.ts`). A saved variable notices by its version that its tensor was
 * overwritten.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope } from '@postgrad/base/internal'
import { isTensor, type Tensor } from '@postgrad/tensor'
import { overwrite, raw } from '@postgrad/tensor/internal'
import { noteWrite } from '../graph/anomaly.js'
import { CopySlices } from '../graph/copy-slices.js'
import { metaOfOutput } from '../graph/node.js'
import { moveRetained } from '../graph/retain-grad.js'
import { gradientEdge, metaOf, replaceHistory, setHistory, type VariableMeta } from '../graph/variable.js'
import { type Untracked, viewMetaOf } from '../graph/views.js'
import { needsGrad } from './record.js'

type Plain = (x: Tensor, p?: unknown, q?: unknown, r?: unknown) => Tensor

/**
 * The recorded form of an in-place operation.
 * @param write the raw operation, for when nothing is recorded
 * @param compute its value as a new tensor, from a tensor with the values and the history of x, recorded; must not be a view of it
 * @param readsX false where the value does not depend on x's: then it is not copied
 */
export function inPlace(op: string, write: Plain, compute: () => Plain, readsX: boolean): Plain {
  const wrapper = (x: Tensor, p?: unknown, q?: unknown, r?: unknown): Tensor => {
    if (!currentScope().gradEnabled || !isRecorded(x, p, q, r)) {
      write(x, p, q, r)
      noteWrite(x.storage)
      return x
    }
    check(op, x, readsX)
    const out = compute()(readsX ? snapshot(x) : x, p, q, r)
    // fill_ and zero_ do not read x. The raw operation writes the same values, also into expanded tensors.
    if (readsX) overwrite(op, x, out)
    else write(x, p, q, r)
    noteWrite(x.storage)
    // The gradient of x has the dtype of x.
    rebase(x, out.dtype === x.dtype ? out : out.to(x.dtype))
    return x
  }
  return Object.defineProperty(wrapper, 'name', { value: op })
}

function isRecorded(x: Tensor, ...args: readonly unknown[]): boolean {
  if (needsGrad(x) || args.some((arg) => isTensor(arg) && needsGrad(arg))) return true
  // A view that does not follow its base has no gradient of its own, but the write would be missing in the base's.
  const view = viewMetaOf(x)
  return view !== null && view.untracked !== null && needsGrad(view.base)
}

/** @param readsX false for copy_, fill_ and zero_, which have no form that makes a new tensor @throws INPLACE_ON_LEAF, INPLACE_ON_VIEW */
function check(op: string, x: Tensor, readsX: boolean): void {
  const view = viewMetaOf(x)
  if (view !== null && view.untracked !== null) throw onView(op, x, view.untracked)
  const otherwise = readsX ? `use ${op.slice(0, -1)}, which makes a new tensor` : 'write into a clone() of it'
  const remedy = `Write into it under noGrad(() => …), or ${otherwise}.`
  const values = { shape: [...x.shape] }
  if (view !== null && needsGrad(view.base) && view.base.isLeaf) {
    const message = 'a view of a leaf that requires grad is used in an in-place operation'
    throw new PostgradError('INPLACE_ON_LEAF', { op, message, remedy, values: { ...values, base: [...view.base.shape] } })
  }
  if (needsGrad(x) && x.isLeaf) {
    throw new PostgradError('INPLACE_ON_LEAF', {
      op,
      message: 'a leaf that requires grad is used in an in-place operation',
      remedy,
      values,
    })
  }
}

/** Values and history of x as they are before the write. */
function snapshot(x: Tensor): Tensor {
  const copy = raw.clone(x)
  const edge = gradientEdge(x)
  if (edge !== null) setHistory(copy, edge.node, edge.inputNr)
  return copy
}

/** After the write: x has the history of `out`, or its base has it there where x lies. */
function rebase(x: Tensor, out: Tensor): void {
  const view = viewMetaOf(x)
  if (view === null) {
    const edge = gradientEdge(out)
    giveHistory(x, edge === null ? null : edge.node, edge === null ? 0 : edge.inputNr)
    return
  }
  const { base } = view
  const edges = [gradientEdge(base), gradientEdge(out)] as const
  if (edges[0] !== null || edges[1] !== null) giveHistory(base, new CopySlices(view.path, edges, metaOfOutput(base)), 0)
}

function giveHistory(x: Tensor, node: VariableMeta['gradFn'], outputNr: number): void {
  const before = metaOf(x)
  if (before !== null && node !== null) moveRetained(before.gradFn, before.outputNr, node, outputNr)
  replaceHistory(x, node, outputNr)
  metaOf(x)!.recordedAt = x.storage.version
}

function onView(op: string, x: Tensor, why: Untracked): PostgradError {
  return new PostgradError('INPLACE_ON_VIEW', {
    op,
    expected: 'a tensor whose base can record the write',
    got: `a view that was ${why}`,
    remedy:
      why === 'made under noGrad'
        ? 'Make the view again while grad mode is on, write under noGrad(() => …), or clone() it first.'
        : 'clone() it first, or write under noGrad(() => …).',
    values: { shape: [...x.shape] },
  })
}
