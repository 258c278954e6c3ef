/** Prints tensors as PyTorch does (`torch/_tensor_str.py`): 4 digits, width 80, the middle left out beyond 1000 elements. Pure text. */
import { type DType, isFloating, type TypedArray } from './dtype.js'
import { numelOf, type Shape } from './shape.js'

const PRECISION = 4
const LINE_WIDTH = 80
const THRESHOLD = 1000
const EDGE_ITEMS = 3

/** `flat` holds the elements in row-major order; `suffixes` follow them, as `requiresGrad=true`. */
export function formatTensor(flat: TypedArray, shape: Shape, dtype: DType, suffixes: readonly string[] = []): string {
  const prefix = 'tensor('
  const numel = numelOf(shape)
  const tail = [...suffixes]
  let body: string
  if (numel === 0) {
    body = '[]'
    if (dtype !== 'float32') tail.unshift(`dtype=${dtype}`)
    if (shape.length !== 1) tail.unshift(`size=[${shape.join(', ')}]`)
  } else {
    if (dtype !== 'float32' && dtype !== 'bool') tail.unshift(`dtype=${dtype}`)
    const visible = numel > THRESHOLD ? edges(flat, shape) : Array.from(flat)
    body = block(flat, shape, 0, 0, numel, prefix.length, elementFormat(visible, dtype), numel > THRESHOLD)
  }
  let text = prefix + body
  let lineLength = text.length - (text.lastIndexOf('\n') + 1)
  for (const suffix of tail) {
    if (lineLength + suffix.length + 2 > LINE_WIDTH) {
      text += `,\n${' '.repeat(prefix.length)}${suffix}`
      lineLength = prefix.length + suffix.length
    } else {
      text += `, ${suffix}`
      lineLength += suffix.length + 2
    }
  }
  return `${text})`
}

interface ElementFormat {
  readonly width: number
  format(value: number): string
}

/** One format for all elements: integers, fixed point or scientific, as wide as the widest. */
function elementFormat(values: readonly number[], dtype: DType): ElementFormat {
  let show: (value: number) => string
  let width = 1
  if (dtype === 'bool') show = (v) => (v === 0 ? 'false' : 'true')
  else if (!isFloating(dtype)) show = String
  else {
    const finite = values.filter((v) => Number.isFinite(v) && v !== 0)
    let min = Number.POSITIVE_INFINITY
    let max = 0
    for (const v of finite) {
      min = Math.min(min, Math.abs(v))
      max = Math.max(max, Math.abs(v))
    }
    const integers = finite.every(Number.isInteger)
    const scientific = finite.length > 0 && (max / min > 1000 || max > 1e8 || (!integers && min < 1e-4))
    show = (v) => {
      if (Number.isNaN(v)) return 'nan'
      if (!Number.isFinite(v)) return v > 0 ? 'inf' : '-inf'
      if (scientific) return exponential(v)
      const text = v.toFixed(integers ? 0 : PRECISION)
      const signed = Object.is(v, -0) ? `-${text}` : text
      return integers ? `${signed}.` : signed
    }
    // PyTorch measures the finite non-zero elements only.
    for (const v of finite) width = Math.max(width, show(v).length)
  }
  if (!isFloating(dtype)) for (const v of values) width = Math.max(width, show(v).length)
  return { width, format: (v) => show(v).padStart(width) }
}

/** As C's %.4e: at least two digits of exponent. */
function exponential(v: number): string {
  const text = v.toExponential(PRECISION)
  const signed = Object.is(v, -0) ? `-${text}` : text
  return signed.replace(/e([+-])(\d)$/, 'e$10$2')
}

function block(
  flat: TypedArray,
  shape: Shape,
  d: number,
  at: number,
  numel: number,
  indent: number,
  element: ElementFormat,
  summarize: boolean,
): string {
  if (d === shape.length) return element.format(flat[at]!)
  const extent = shape[d]!
  const step = numel / extent
  const gap = summarize && extent > 2 * EDGE_ITEMS
  const rows: string[] = []
  for (let i = 0; i < extent; i++) {
    if (gap && i === EDGE_ITEMS) {
      rows.push(d === shape.length - 1 ? ' ...' : '...')
      i = extent - EDGE_ITEMS
    }
    rows.push(block(flat, shape, d + 1, at + i * step, step, indent + 1, element, summarize))
  }
  if (d < shape.length - 1) return `[${rows.join(`,${'\n'.repeat(shape.length - 1 - d)}${' '.repeat(indent + 1)}`)}]`
  const perLine = Math.max(1, Math.floor((LINE_WIDTH - indent) / (element.width + 2)))
  const lines: string[] = []
  for (let i = 0; i < rows.length; i += perLine) lines.push(rows.slice(i, i + perLine).join(', '))
  return `[${lines.join(`,\n${' '.repeat(indent + 1)}`)}]`
}

/** The elements that a summary shows. */
function edges(flat: TypedArray, shape: Shape): number[] {
  const out: number[] = []
  const visit = (d: number, at: number, numel: number): void => {
    if (d === shape.length) {
      out.push(flat[at]!)
      return
    }
    const extent = shape[d]!
    const step = numel / extent
    for (let i = 0; i < extent; i++) {
      if (extent > 2 * EDGE_ITEMS && i === EDGE_ITEMS) i = extent - EDGE_ITEMS
      visit(d + 1, at + i * step, step)
    }
  }
  visit(0, 0, flat.length)
  return out
}
