/**
 * From a raw operation and its row of derivatives to the function that users call: compute, and, where grad mode is on and an argument requires
 * grad, leave a node behind. One family of wrappers per form of argument list; nothing but the node is made per call.
 */
import { currentScope } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { isFloating } from '@postgrad/tensor/internal'
import type { BinaryRow, ListRow, TensorOps, UnaryRow } from '../graph/formula.js'
import { ListNode, nodeName, OpNode, type OpSpec, opSpec, READS } from '../graph/op-node.js'
import { SavedVariable } from '../graph/saved-variable.js'
import { gradientEdge, setHistory, VariableMeta } from '../graph/variable.js'
import { ViewMeta } from '../graph/views.js'

type Operand = Tensor | number

/** The table's rows are typed per operation; here they are all alike. */
type AnyRow = UnaryRow<unknown>

export function needsGrad(x: Operand): x is Tensor {
  return typeof x !== 'number' && x.autograd !== null && x.autograd.requiresGrad
}

/** f(x) */
export function recordUnary(
  op: string,
  forward: (x: Tensor) => Tensor,
  row: UnaryRow<[]>,
  recorded: () => TensorOps,
): (x: Tensor) => Tensor {
  const spec = opSpec(op, (row as AnyRow).a, null, recorded)
  return named(op, (x: Tensor): Tensor => {
    const out = forward(x)
    if (!needsGrad(x) || out === x || !currentScope().gradEnabled) return out
    newNode(spec, x, out)
    return out
  })
}

/** f(x, …attributes): at most three of them. What shares its storage with x is noted as a view of it. */
export function recordAttributed<A extends readonly unknown[]>(
  op: string,
  forward: (x: Tensor, ...attrs: A) => Tensor,
  row: UnaryRow<A>,
  recorded: () => TensorOps,
): (x: Tensor, ...attrs: A) => Tensor {
  const spec = opSpec(op, (row as AnyRow).a, null, recorded)
  const call = forward as unknown as (x: Tensor, p: unknown, q: unknown, r: unknown) => Tensor
  const wrapper = (x: Tensor, p?: unknown, q?: unknown, r?: unknown): Tensor => {
    const out = call(x, p, q, r)
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
  return named(op, wrapper) as unknown as (x: Tensor, ...attrs: A) => Tensor
}

/** f(x, indices, …attributes): at most one attribute. */
export function recordLookup<A extends readonly unknown[]>(
  op: string,
  forward: (x: Tensor, index: Tensor, ...attrs: A) => Tensor,
  row: UnaryRow<A>,
  recorded: () => TensorOps,
): (x: Tensor, index: Tensor, ...attrs: A) => Tensor {
  const spec = opSpec(op, (row as AnyRow).a, null, recorded)
  const call = forward as unknown as (x: Tensor, index: Tensor, p: unknown) => Tensor
  const wrapper = (x: Tensor, index: Tensor, p?: unknown): Tensor => {
    const out = call(x, index, p)
    if (!needsGrad(x) || !currentScope().gradEnabled) return out
    const node = newNode(spec, x, out)
    node.savedIndex = new SavedVariable(index)
    node.attrs = [p]
    return out
  }
  return named(op, wrapper) as unknown as (x: Tensor, index: Tensor, ...attrs: A) => Tensor
}

/** f(a, b), of which one may be a number. */
export function recordBinary<B extends Operand>(
  op: string,
  forward: (a: B, b: B) => Tensor,
  row: BinaryRow,
  recorded: () => TensorOps,
): (a: B, b: B) => Tensor {
  const spec = opSpec(op, row.a, row.b, recorded)
  return named(op, (a: B, b: B): Tensor => {
    const out = forward(a, b)
    const needA = needsGrad(a)
    const needB = needsGrad(b)
    if ((needA || needB) && currentScope().gradEnabled) newBinaryNode(spec, a, b, needA, needB, out)
    return out
  })
}

/** f(condition, a, b) */
export function recordWhere(
  op: string,
  forward: (cond: Tensor, a: Operand, b: Operand) => Tensor,
  row: BinaryRow,
  recorded: () => TensorOps,
): (cond: Tensor, a: Operand, b: Operand) => Tensor {
  const spec = opSpec(op, row.a, row.b, recorded)
  return named(op, (cond: Tensor, a: Operand, b: Operand): Tensor => {
    const out = forward(cond, a, b)
    const needA = needsGrad(a)
    const needB = needsGrad(b)
    if ((needA || needB) && currentScope().gradEnabled) {
      newBinaryNode(spec, a, b, needA, needB, out).savedIndex = new SavedVariable(cond)
    }
    return out
  })
}

/** f([x, y, …], dim) */
export function recordList(
  op: string,
  forward: (tensors: readonly Tensor[], dim?: number) => Tensor,
  row: ListRow,
  recorded: () => TensorOps,
): (tensors: readonly Tensor[], dim?: number) => Tensor {
  const name = nodeName(op)
  return named(op, (tensors: readonly Tensor[], dim = 0): Tensor => {
    const out = forward(tensors, dim)
    if (!tensors.some(needsGrad) || !currentScope().gradEnabled) return out
    const shapes = tensors.map((x) => x.shape)
    setHistory(out, new ListNode(name, row, tensors.map(gradientEdge), [{ shape: out.shape, dtype: out.dtype }], shapes, dim, recorded), 0)
    return out
  })
}

function newNode(spec: OpSpec, x: Tensor, out: Tensor): OpNode {
  const node = new OpNode(spec, [gradientEdge(x)], [{ shape: out.shape, dtype: out.dtype }], x.dtype)
  node.shapeA = x.shape
  if ((spec.readsA & READS.a) !== 0) node.savedA = new SavedVariable(x)
  finish(node, spec.readsA, out)
  return node
}

function newBinaryNode(spec: OpSpec, a: Operand, b: Operand, needA: boolean, needB: boolean, out: Tensor): OpNode {
  const edges = [needA ? gradientEdge(a as Tensor) : null, needB ? gradientEdge(b as Tensor) : null]
  const node = new OpNode(spec, edges, [{ shape: out.shape, dtype: out.dtype }], out.dtype)
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
    if ((reads & READS.result) !== 0) node.savedResult = new SavedVariable(out)
  }
}

/** Functions are called by name over the wire and shown in stacks, so they carry the operation's. */
function named<F extends object>(op: string, fn: F): F {
  return Object.defineProperty(fn, 'name', { value: op })
}
