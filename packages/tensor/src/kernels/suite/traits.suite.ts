/**
 * The traits of a kernel's calls: the suite's own record of the cases it has tried, taken from the arguments, so that it finds a family that
 * forgets a form. `cell.suite.ts` asks it for missing traits.
 */
import type { DType } from '../../values/dtype.js'
import { ELEMENT_WISE, type Operand } from '../table/operands.js'
import { OPS } from '../table/ops.js'
import type { KernelOp } from '../table/table.js'
import { stepOver } from '../table/walk.js'

type Special = 'NaN' | 'infinite' | '-0' | 'denormal'
type Trait = 'empty' | '0-d' | 'offset' | 'broadcast' | 'one repeated' | 'row repeated' | 'gaps' | 'in place' | 'long' | Special
type Form = 'dense' | 'strided'
type Kernel = (...args: unknown[]) => void

/** From here on SIMD kernels leave their loops for small operands. */
const LONG = 80

/** The kernel; every call takes its traits out of `missing`, as 'trait' or as 'form trait'. */
export function observed(kernel: object, missing: Set<string>): object {
  return (...args: unknown[]) => {
    if (missing.size > 0) account(args, missing)
    ;(kernel as Kernel)(...args)
  }
}

function account(args: readonly unknown[], missing: Set<string>): void {
  const operands = args.filter((arg): arg is Operand => typeof arg === 'object' && arg !== null && 'storage' in arg)
  const form = formOf(operands)
  const isMissing = (trait: Trait) => missing.has(trait) || missing.has(`${form} ${trait}`)
  for (const trait of traitsOf(operands, isMissing)) {
    missing.delete(trait)
    missing.delete(`${form} ${trait}`)
  }
}

/** Kernels have a run for operands that are dense over the output, or one element; strides, and what broadcasts otherwise, take other code. */
function formOf(operands: readonly Operand[]): Form {
  const out = operands.at(-1)!
  return operands.every((x) => stepOver(x, out) >= 0) ? 'dense' : 'strided'
}

const isRowOf = ({ shape, numel, isContiguous }: Operand, out: Operand): boolean =>
  isContiguous && numel > 1 && numel < out.numel && shape.at(-1) === out.shape.at(-1)

function* traitsOf(operands: readonly Operand[], isMissing: (trait: Trait) => boolean): Generator<Trait> {
  const arrays = operands.map(({ storage }) => storage.host!)
  const out = operands.at(-1)!
  if (operands.some(({ numel }) => numel === 0)) yield 'empty'
  if (operands.some(({ numel }) => numel >= LONG)) yield 'long'
  if (operands.some(({ offset }) => offset > 0)) yield 'offset'
  if (operands.some(({ shape, strides }) => strides.some((step, d) => step === 0 && shape[d]! > 1))) yield 'broadcast'
  if (operands.some(({ numel }) => numel === 1 && out.numel > 1)) yield 'one repeated'
  if (operands.some((x) => isRowOf(x, out))) yield 'row repeated'
  if (operands.every(({ shape }) => shape.length === 0)) yield '0-d'
  if (operands.some(({ strides, numel }) => numel > 1 && strides.length > 0 && strides.at(-1)! > 1)) yield 'gaps'
  if (new Set(arrays).size < arrays.length) yield 'in place'
  for (const trait of ['NaN', 'infinite', '-0', 'denormal'] as const) {
    if (isMissing(trait) && arrays.slice(0, Math.max(1, arrays.length - 1)).some((array) => array.some(IS[trait]))) yield trait
  }
}

const INFINITY = Number.POSITIVE_INFINITY
const { isNaN: isNan } = Number

/** Without globals in the loop: in jest's realm each look-up costs more than the rest. */
const IS: Readonly<Record<Special, (v: number) => boolean>> = {
  NaN: isNan,
  infinite: (v) => v === INFINITY || v === -INFINITY,
  '-0': (v) => v === 0 && 1 / v < 0,
  denormal: (v) => v !== 0 && v < 1.1e-38 && v > -1.1e-38,
}

/** They have no input. */
const NO_INPUT: ReadonlySet<KernelOp> = new Set(['fill'])
/** Differences of sums: whether infinite terms cancel depends on the order, which is the backend's. */
const NO_INFINITY: ReadonlySet<KernelOp> = new Set([
  'softmaxBackward',
  'logSoftmaxBackward',
  'cumprodBackward',
  'layerNormBackward',
  'channelNormBackward',
  'attentionBackward',
])
/** Special values that they give or compare. */
const SIGNED: ReadonlySet<KernelOp> = new Set<KernelOp>([...OPS.unary, ...OPS.binary, ...OPS.compare, 'where', 'copy'])
const IN_PLACE: ReadonlySet<KernelOp> = new Set<KernelOp>([...OPS.unary, ...OPS.binary])

const SEVERAL: ReadonlySet<KernelOp> = new Set<KernelOp>([...OPS.binary, ...OPS.compare, 'where', 'axpy'])
/** Their inputs may be smaller than the output. */
const BROADCASTS: ReadonlySet<KernelOp> = new Set<KernelOp>([...SEVERAL, 'copy'])
/** The other families write to a dense output, also in place. */
const STRIDED_IN_PLACE: ReadonlySet<KernelOp> = new Set<KernelOp>(OPS.binary)

/** Traits that a kernel must be tried with: element-wise ones in both forms, as 'form trait'. */
export function wanted(op: KernelOp, dtype: DType): string[] {
  const special = specialsOf(op, dtype)
  if (!ELEMENT_WISE.has(op)) return ['guarded', 'empty', 'offset', 'long', ...special]
  // Strides of no dimension, or of no element, are dense: in the strided form only an operand that broadcasts can meet an empty output.
  const dense: Trait[] = ['empty', '0-d', 'offset', 'long']
  const strided: Trait[] = ['offset', 'long', 'gaps']
  if (!NO_INPUT.has(op)) strided.push('broadcast')
  if (BROADCASTS.has(op)) strided.push('empty', 'row repeated')
  if (IN_PLACE.has(op)) dense.push('in place')
  if (STRIDED_IN_PLACE.has(op)) strided.push('in place')
  const several: Trait[] = SEVERAL.has(op) ? ['one repeated'] : []
  return [
    'guarded',
    ...[...dense, ...several, ...special].map((trait) => `dense ${trait}`),
    ...[...strided, ...several, ...special].map((trait) => `strided ${trait}`),
  ]
}

function specialsOf(op: KernelOp, dtype: DType): Special[] {
  if ((dtype !== 'float32' && dtype !== 'float64') || NO_INPUT.has(op)) return []
  return ['NaN', ...(NO_INFINITY.has(op) ? [] : ['infinite' as const]), ...(SIGNED.has(op) ? (['-0', 'denormal'] as const) : [])]
}
