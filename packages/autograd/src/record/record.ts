/**
 * Makes a recorded operation of a raw one and its row of derivatives: it computes, and, if grad mode is on and an argument requires grad,
 * records a node. One wrapper per form of argument list; a call makes nothing but the node.
 */
import { currentScope } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { type BinaryRow, type Formula, isFloating, isPending, type ListRow, type LookupRow, records } from '@postgrad/tensor/internal'
import { metaOfOutput } from '../graph/node.js'
import { ListNode, nodeName, OpNode, type OpSpec, opSpec, READS } from '../graph/op-node.js'
import { SavedVariable } from '../graph/saved-variable.js'
import { gradientEdge, setHistory, VariableMeta } from '../graph/variable.js'
import { ViewMeta } from '../graph/views.js'

type Operand = Tensor | number

export function needsGrad(x: Operand): x is Tensor {
  return typeof x !== 'number' && x.autograd !== null && x.autograd.requiresGrad
}

/** f(x) */
export function recordUnary(op: string, forward: (x: Tensor) => Tensor, row: Formula<never>): (x: Tensor) => Tensor {
  const spec = opSpec(op, row, null)
  return (x: Tensor): Tensor => {
    const out = forward(x)
    if (!needsGrad(x) || out === x || !currentScope().gradEnabled) return out
    newNode(spec, x, out)
    return out
  }
}

/** f(x, …attributes): at most three of them. A result that shares x's storage is noted as a view. */
export function recordAttributed(
  op: string,
  forward: (x: Tensor, p?: unknown, q?: unknown, r?: unknown) => Tensor,
  row: Formula<never>,
): (x: Tensor, p?: unknown, q?: unknown, r?: unknown) => Tensor {
  const spec = opSpec(op, row, null)
  const wrapper = (x: Tensor, p?: unknown, q?: unknown, r?: unknown): Tensor => {
    const out = forward(x, p, q, r)
    if (out === x) return out
    const { gradEnabled } = currentScope()
    let node: OpNode | null = null
    if (gradEnabled && needsGrad(x)) {
      node = newNode(spec, x, out)
      node.attrs = [p, q, r]
    }
    if (out.storage === x.storage && isFloating(out.dtype)) {
      out.autograd = new ViewMeta(x, wrapper, p, q, r, node, gradEnabled ? null : 'made under noGrad')
    }
    return out
  }
  return wrapper
}

/** f(x, indices, …attributes): at most one attribute. */
export function recordLookup(
  op: string,
  forward: (x: Tensor, index: Tensor, p?: unknown) => Tensor,
  row: LookupRow<never>,
): (x: Tensor, index: Tensor, p?: unknown) => Tensor {
  const spec = opSpec(op, row.x, null)
  return (x: Tensor, index: Tensor, p?: unknown): Tensor => {
    const out = forward(x, index, p)
    if (!needsGrad(x) || !currentScope().gradEnabled) return out
    const node = newNode(spec, x, out)
    node.savedIndex = new SavedVariable(index)
    node.attrs = [p]
    return out
  }
}

/** f(a, b), of which one may be a number. */
export function recordBinary(op: string, forward: (a: Operand, b: Operand) => Tensor, row: BinaryRow): (a: Operand, b: Operand) => Tensor {
  const spec = opSpec(op, row.a, row.b)
  return (a: Operand, b: Operand): Tensor => {
    const out = forward(a, b)
    const needA = needsGrad(a)
    const needB = needsGrad(b)
    if ((needA || needB) && currentScope().gradEnabled) newBinaryNode(spec, a, b, needA, needB, out)
    return out
  }
}

/** f(condition, a, b) */
export function recordWhere(
  op: string,
  forward: (cond: Tensor, a: Operand, b: Operand) => Tensor,
  row: BinaryRow,
): (cond: Tensor, a: Operand, b: Operand) => Tensor {
  const spec = opSpec(op, row.a, row.b)
  return (cond: Tensor, a: Operand, b: Operand): Tensor => {
    const out = forward(cond, a, b)
    const needA = needsGrad(a)
    const needB = needsGrad(b)
    if ((needA || needB) && currentScope().gradEnabled) {
      newBinaryNode(spec, a, b, needA, needB, out).savedIndex = new SavedVariable(cond)
    }
    return out
  }
}

/** f([x, y, …], dim) */
export function recordList(
  op: string,
  forward: (tensors: readonly Tensor[], dim?: number) => Tensor,
  row: ListRow,
): (tensors: readonly Tensor[], dim?: number) => Tensor {
  const name = nodeName(op)
  return (tensors: readonly Tensor[], dim = 0): Tensor => {
    const out = forward(tensors, dim)
    if (!tensors.some(needsGrad) || !currentScope().gradEnabled) return out
    const shapes = tensors.map((x) => x.shape)
    setHistory(out, new ListNode(name, row, tensors.map(gradientEdge), [metaOfOutput(out)], shapes, dim), 0)
    return out
  }
}

function newNode(spec: OpSpec, x: Tensor, out: Tensor): OpNode {
  const node = new OpNode(spec, [gradientEdge(x)], [metaOfOutput(out)], x.dtype)
  node.shapeA = x.shape
  if ((spec.readsA & READS.a) !== 0) node.savedA = new SavedVariable(x)
  finish(node, spec.readsA, out)
  return node
}

function newBinaryNode(spec: OpSpec, a: Operand, b: Operand, needA: boolean, needB: boolean, out: Tensor): OpNode {
  const edges = [needA ? gradientEdge(a as Tensor) : null, needB ? gradientEdge(b as Tensor) : null]
  const node = new OpNode(spec, edges, [metaOfOutput(out)], out.dtype)
  const reads = (needA ? spec.readsA : 0) | (needB ? spec.readsB : 0)
  if (typeof a !== 'number') node.shapeA = a.shape
  if (typeof b !== 'number') node.shapeB = b.shape
  if ((reads & READS.a) !== 0) node.savedA = typeof a === 'number' ? a : new SavedVariable(a)
  if ((reads & READS.b) !== 0) node.savedB = typeof b === 'number' ? b : new SavedVariable(b)
  finish(node, reads, out)
  return node
}

function finish(node: OpNode, reads: number, out: Tensor): void {
  // An integer result (`to('int32')`) has no gradient and stays a leaf.
  if (out.dtype === 'float32' || out.dtype === 'float64') {
    out.autograd = new VariableMeta(true, node, 0)
    if (records && isPending(out)) node.isOfChain = true
    if ((reads & READS.result) !== 0) node.savedResult = new SavedVariable(out)
  }
}
