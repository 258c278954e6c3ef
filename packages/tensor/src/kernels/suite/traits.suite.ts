/**
 * What a kernel was called with: the suite's own account of what it has tried. Seen from the arguments, so that a family which forgets a form is
 * found whatever it says of itself. Above: `cell.suite.ts`, which asks for what is missing.
 */
import type { DType } from '../../values/dtype.js'
import { ELEMENT_WISE, type Operand } from '../table/operands.js'
import { OPS } from '../table/ops.js'
import type { KernelOp } from '../table/table.js'

type Special = 'NaN' | 'infinite' | '-0' | 'denormal'
type Trait = 'empty' | '0-d' | 'offset' | 'broadcast' | 'one repeated' | 'gaps' | 'in place' | 'long' | Special
type Kernel = (...args: unknown[]) => void

/** From here on SIMD kernels leave their loops for small operands. */
const LONG = 80

/** The kernel; every call takes what it shows out of `missing`. */
export function observed(kernel: object, missing: Set<string>): object {
  return (...args: unknown[]) => {
    if (missing.size > 0) for (const trait of traitsOf(args, missing)) missing.delete(trait)
    ;(kernel as Kernel)(...args)
  }
}

function* traitsOf(args: readonly unknown[], missing: ReadonlySet<string>): Generator<Trait> {
  const operands = args.filter((arg): arg is Operand => typeof arg === 'object' && arg !== null && 'storage' in arg)
  const arrays = operands.map(({ storage }) => storage.host!)
  const out = operands.at(-1)!
  if (operands.some(({ numel }) => numel === 0)) yield 'empty'
  if (operands.some(({ numel }) => numel >= LONG)) yield 'long'
  if (operands.some(({ offset }) => offset > 0)) yield 'offset'
  if (operands.some(({ shape, strides }) => strides.some((step, d) => step === 0 && shape[d]! > 1))) yield 'broadcast'
  if (operands.some(({ numel }) => numel === 1 && out.numel > 1)) yield 'one repeated'
  if (operands.every(({ shape }) => shape.length === 0)) yield '0-d'
  if (operands.some(({ strides, numel }) => numel > 1 && strides.length > 0 && strides.at(-1)! > 1)) yield 'gaps'
  if (new Set(arrays).size < arrays.length) yield 'in place'
  for (const trait of ['NaN', 'infinite', '-0', 'denormal'] as const) {
    if (missing.has(trait) && arrays.slice(0, Math.max(1, arrays.length - 1)).some((array) => array.some(IS[trait]))) yield trait
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
])
/** Special values that they give or compare. */
const SIGNED: ReadonlySet<KernelOp> = new Set<KernelOp>([...OPS.unary, ...OPS.binary, ...OPS.compare, 'where', 'copy'])
const IN_PLACE: ReadonlySet<KernelOp> = new Set<KernelOp>([...OPS.unary, ...OPS.binary])

const SEVERAL: ReadonlySet<KernelOp> = new Set<KernelOp>([...OPS.binary, ...OPS.compare, 'where', 'axpy'])

/** What a kernel must have been tried with. */
export function wanted(op: KernelOp, dtype: DType): string[] {
  const real = (dtype === 'float32' || dtype === 'float64') && !NO_INPUT.has(op)
  const traits: Trait[] = ['empty', 'offset', 'long']
  if (ELEMENT_WISE.has(op)) traits.push('0-d', 'gaps')
  if (ELEMENT_WISE.has(op) && !NO_INPUT.has(op)) traits.push('broadcast')
  if (SEVERAL.has(op)) traits.push('one repeated')
  if (IN_PLACE.has(op)) traits.push('in place')
  if (real) traits.push('NaN')
  if (real && !NO_INFINITY.has(op)) traits.push('infinite')
  if (real && SIGNED.has(op)) traits.push('-0', 'denormal')
  return ['guarded', ...traits]
}
