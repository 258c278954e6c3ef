/**
 * Einstein's sums: 'bij,bjk->bik'. Operands are contracted from left to right, two at a time, each pair by one batched matrix product
 *
 *     [batch, rows, sums] · [batch, sums, columns] → [batch, rows, columns]
 *
 * with the letters sorted into: in both and kept (batch), in both and summed (sums), in one alone (rows, columns). PyTorch: `einsum` in
 * `ATen/native/Linear.cpp`.
 */

import { hasDevices } from '../../heap/memory.js'
import { onOneDevice } from '../../tensor/arguments.js'
import { isTensor, type Tensor } from '../../tensor/tensor.js'
import { invalidArgument, shapeMismatch, shapeText } from '../../values/errors.js'
import { numelOf, sameShape } from '../../values/shape.js'
import type { Ops } from '../define/define.js'

/** A tensor whose dimensions have names: letters, and '.0', '.1', … for those under an ellipsis, counted from the last. */
interface Term {
  readonly x: Tensor
  readonly labels: readonly string[]
}

/** @throws INVALID_ARGUMENT for a malformed equation, SHAPE_MISMATCH for operands that do not fit it */
export function contract(ops: Ops, equation: string, operands: readonly Tensor[]): Tensor {
  if (hasDevices) onOneDevice({ name: 'einsum' }, [operands])
  const { inputs, output } = subscriptsOf(equation, operands)
  const extents = extentsOf(operands, inputs)
  let terms = operands.map((x, i) => withoutRepeats(ops, { x, labels: inputs[i]! }))
  // Letters of one operand alone that are not in the output are summed first.
  terms = terms.map((term, i) =>
    summed(ops, term, (label) => output.includes(label) || terms.some((other, j) => i !== j && other.labels.includes(label))),
  )
  let product = terms[0]!
  for (let i = 1; i < terms.length; i++) {
    const isNeeded: Needed = (label) => output.includes(label) || terms.some((later, j) => j > i && later.labels.includes(label))
    product = multiplied(ops, product, terms[i]!, isNeeded, extents)
  }
  return ordered(ops, product, output)
}

/** Whether the output, or an operand that is still to come, has the letter. */
type Needed = (label: string) => boolean

/** The letters of each operand, and of the output. */
interface Subscripts {
  readonly inputs: readonly (readonly string[])[]
  readonly output: readonly string[]
}

/** The letters of each equation, for operands of as many dimensions as its last ones had. A program has few; reading one takes as long as a small product. */
const read = new Map<string, Subscripts>()
const READ_MAX = 1000

function subscriptsOf(equation: string, operands: readonly Tensor[]): Subscripts {
  const known = read.get(equation)
  if (
    known !== undefined &&
    known.inputs.length === operands.length &&
    known.inputs.every((labels, i) => isTensor(operands[i]) && labels.length === operands[i]!.ndim)
  )
    return known
  const subscripts = parse(equation, operands)
  if (read.size >= READ_MAX) read.clear()
  read.set(equation, subscripts)
  return subscripts
}

function parse(equation: string, operands: readonly Tensor[]): Subscripts {
  const malformed = (expected: string, got: string) => invalidArgument('einsum', expected, got, "Write 'ij,jk->ik'.")
  if (typeof equation !== 'string') throw malformed('an equation', typeof equation)
  for (const x of operands) if (!isTensor(x)) throw malformed('tensors as operands', x === null ? 'null' : typeof x)
  const [left = '', right, ...more] = equation.replaceAll(' ', '').split('->')
  if (more.length > 0) throw malformed("at most one '->'", `'${equation}'`)
  const subscripts = left.split(',')
  if (operands.length === 0 || subscripts.length !== operands.length) {
    throw malformed(`subscripts for each of the ${operands.length} operands`, `${subscripts.length} in '${equation}'`)
  }
  const inputs = subscripts.map((text, i) => {
    const letters = tokens(text, equation)
    const x = operands[i]!
    const hidden = x.ndim - letters.filter((letter) => letter !== '...').length
    if (letters.includes('...') ? hidden < 0 : hidden !== 0) {
      throw shapeMismatch(
        'einsum',
        `a tensor of ${x.ndim - hidden}${letters.includes('...') ? ' or more' : ''} dimensions for '${text}'`,
        `operand ${i} of shape ${shapeText(x.shape)}`,
        "Name each dimension with a letter, or write '...' for the rest.",
      )
    }
    return letters.flatMap((letter) => (letter === '...' ? ellipsis(hidden) : [letter]))
  })
  const widest = Math.max(...inputs.map((labels) => labels.filter((label) => label.startsWith('.')).length))
  if (right === undefined) {
    const all = inputs.flat().filter((label) => !label.startsWith('.'))
    const once = all.filter((label) => all.indexOf(label) === all.lastIndexOf(label))
    return { inputs, output: [...ellipsis(widest), ...once.sort()] }
  }
  const output = tokens(right, equation).flatMap((letter) => (letter === '...' ? ellipsis(widest) : [letter]))
  for (const label of output) {
    if (output.indexOf(label) !== output.lastIndexOf(label))
      throw malformed('each letter once after the arrow', `'${label}' twice in '${equation}'`)
    if (!inputs.some((labels) => labels.includes(label)))
      throw malformed('letters of the operands after the arrow', `'${label}' in '${equation}'`)
  }
  return { inputs, output }
}

/** Letters, and at most one '...'. */
function tokens(text: string, equation: string): string[] {
  const found = text.match(/\.\.\.|[A-Za-z]|./g) ?? []
  const strange = found.find((token) => token !== '...' && !/^[A-Za-z]$/.test(token))
  if (strange !== undefined) throw invalidArgument('einsum', "letters, ',', '->' and '...'", `'${strange}' in '${equation}'`)
  if (found.filter((token) => token === '...').length > 1)
    throw invalidArgument('einsum', "at most one '...' for an operand", `'${equation}'`)
  return [...found]
}

/** The hidden dimensions, which are aligned from the last one on. */
function ellipsis(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `.${count - 1 - i}`)
}

/** The extent of each label; an extent of 1 broadcasts. */
function extentsOf(operands: readonly Tensor[], inputs: readonly (readonly string[])[]): ReadonlyMap<string, number> {
  const extents = new Map<string, number>()
  for (const [i, labels] of inputs.entries()) {
    for (const [d, label] of labels.entries()) {
      const extent = operands[i]!.shape[d]!
      const known = extents.get(label) ?? 1
      if (known !== 1 && extent !== 1 && known !== extent) {
        const what = label.startsWith('.') ? "a dimension under '...'" : `'${label}'`
        throw shapeMismatch(
          'einsum',
          `one extent for ${what} (or 1)`,
          `${known} and, in operand ${i} of shape ${shapeText(operands[i]!.shape)}, ${extent}`,
          'Dimensions with the same letter have the same extent.',
        )
      }
      extents.set(label, known === 1 ? extent : known)
    }
  }
  return extents
}

/** The diagonal of dimensions that have the same label. */
function withoutRepeats(ops: Ops, term: Term): Term {
  const { x, labels } = term
  for (const [second, label] of labels.entries()) {
    const first = labels.indexOf(label)
    if (first === second) continue
    if (x.shape[first] !== x.shape[second]) {
      throw shapeMismatch(
        'einsum',
        `equal extents of the dimensions named '${label}'`,
        shapeText(x.shape),
        'A letter that comes twice takes the diagonal.',
      )
    }
    const rest = labels.filter((_, d) => d !== first && d !== second)
    return withoutRepeats(ops, { x: ops.diagonal(x, 0, first, second), labels: [...rest, label] })
  }
  return term
}

/** Without the dimensions that nobody needs. */
function summed(ops: Ops, term: Term, isNeeded: Needed): Term {
  const { x, labels } = term
  if (labels.every(isNeeded)) return term
  const dims = labels.flatMap((label, d) => (isNeeded(label) ? [] : [d]))
  return { x: ops.sum(x, dims), labels: labels.filter(isNeeded) }
}

function multiplied(ops: Ops, a: Term, b: Term, isNeeded: Needed, extents: ReadonlyMap<string, number>): Term {
  const shared = a.labels.filter((label) => b.labels.includes(label))
  const batch = shared.filter(isNeeded)
  const sums = shared.filter((label) => !isNeeded(label))
  const rows = a.labels.filter((label) => !b.labels.includes(label))
  const columns = b.labels.filter((label) => !a.labels.includes(label))
  const labels = [...batch, ...rows, ...columns]
  if (sums.length === 0) {
    // Nothing is summed: an element-wise product, which broadcasts by itself.
    const [left, right] = [ordered(ops, a, [...batch, ...rows]), ordered(ops, b, [...batch, ...columns])]
    const shape = [...left.shape, ...columns.map(() => 1)]
    const spread = right.shape.toSpliced(batch.length, 0, ...rows.map(() => 1))
    return { x: ops.mul(ops.reshape(left, shape), ops.reshape(right, spread)), labels }
  }
  const sizes = (list: readonly string[]) => list.map((label) => extents.get(label)!)
  const [m, n, k, t] = [rows, columns, sums, batch].map((list) => numelOf(sizes(list))) as [number, number, number, number]
  const arranged = (term: Term, order: readonly string[], shape: readonly number[]) => {
    const x = ordered(ops, term, order)
    const spread = sizes(order)
    return shaped(ops, sameShape(x.shape, spread) ? x : ops.expand(x, spread), shape)
  }
  // Without a batch matrices are enough.
  const front = batch.length === 0 ? [] : [t]
  const left = arranged(a, [...batch, ...rows, ...sums], [...front, m, k])
  const right = arranged(b, [...batch, ...sums, ...columns], [...front, k, n])
  return { x: shaped(ops, ops.matmul(left, right), sizes(labels)), labels }
}

function shaped(ops: Ops, x: Tensor, shape: readonly number[]): Tensor {
  return sameShape(x.shape, shape) ? x : ops.reshape(x, shape)
}

/** The dimensions in that order. */
function ordered(ops: Ops, { x, labels }: Term, order: readonly string[]): Tensor {
  const dims = order.map((label) => labels.indexOf(label))
  return dims.every((d, i) => d === i) ? x : ops.permute(x, dims)
}
