/**
 * What a kernel was called with: the suite's own account of what it has tried. Seen from the arguments, so that a family which forgets a form is
 * found whatever it says of itself. Above: `cell.suite.ts`, which asks for what is missing.
 */
import type { DType, TypedArray } from '../../values/dtype.js'
import { OPS } from '../table/ops.js'
import type { KernelOp } from '../table/table.js'

type Special = 'NaN' | 'infinite' | '-0' | 'denormal'
type Trait = 'empty' | '0-d' | 'offset' | 'broadcast' | 'gaps' | 'in place' | 'long' | Special
type Form = 'flat' | 'strided' | 'run'
type Method = (...args: unknown[]) => void

const FORMS: readonly Form[] = ['flat', 'strided', 'run']
/** From here on SIMD kernels leave their loops for small operands. */
const LONG = 80

/** The kernel; every call takes what it shows out of `missing`, where it stands as 'form trait'. */
export function observed(kernel: object, missing: Set<string>): object {
  const methods = kernel as Readonly<Record<Form, Method | undefined>>
  return Object.fromEntries(
    FORMS.filter((form) => typeof methods[form] === 'function').map((form) => [
      form,
      (...args: unknown[]) => {
        if (missing.size > 0) for (const trait of traitsOf(form, args, missing)) missing.delete(`${form} ${trait}`)
        methods[form]!(...args)
      },
    ]),
  )
}

function* traitsOf(form: Form, args: readonly unknown[], missing: ReadonlySet<string>): Generator<Trait> {
  const arrays = args.filter((arg) => ArrayBuffer.isView(arg)) as unknown as readonly TypedArray[]
  const lists = args.filter((arg) => Array.isArray(arg)) as readonly (readonly number[])[]
  if (form === 'strided') {
    const [shape, ...strides] = lists as readonly [readonly number[], ...(readonly number[])[]]
    const n = shape.reduce((a, b) => a * b, 1)
    if (n === 0) yield 'empty'
    if (shape.length === 0) yield '0-d'
    if (n >= LONG) yield 'long'
    if (strides.some((each) => each.some((step, d) => step === 0 && shape[d]! > 1))) yield 'broadcast'
    if (n > 1 && strides.some((each) => each.length > 0 && each.at(-1)! > 1)) yield 'gaps'
  } else {
    // [outer, k, inner], [batch, m, n, k], n; or a geometry.
    const sizes = args.findIndex((arg) => typeof arg !== 'number')
    const numbers = sizes === 0 ? Object.values(args[0] as object) : args.slice(0, sizes)
    const extents = (form === 'flat' ? numbers.slice(0, 1) : sizes === 0 ? numbers : numbers.filter((v) => Number.isInteger(v))) as number[]
    if (sizes === 0 ? arrays.some((array) => array.length <= 6) : extents.some((n) => n === 0)) yield 'empty'
    if (arrays.some((array) => array.length >= LONG)) yield 'long'
  }
  if (args.some((arg, i) => i > 0 && typeof arg === 'number' && arg > 0 && ArrayBuffer.isView(args[i - 1]))) yield 'offset'
  if (new Set(arrays).size < arrays.length) yield 'in place'
  for (const trait of ['NaN', 'infinite', '-0', 'denormal'] as const) {
    if (missing.has(`${form} ${trait}`) && arrays.slice(0, Math.max(1, arrays.length - 1)).some((array) => array.some(IS[trait])))
      yield trait
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
const ELEMENT_WISE: ReadonlySet<KernelOp> = new Set<KernelOp>([...OPS.unary, ...OPS.binary, ...OPS.compare, 'where', 'copy'])
const IN_PLACE: ReadonlySet<KernelOp> = new Set<KernelOp>([...OPS.unary, ...OPS.binary])

/** What a kernel must have been tried with, by its forms, op and dtype. */
export function wanted(kernel: object, op: KernelOp, dtype: DType): string[] {
  const methods = kernel as Readonly<Record<Form, unknown>>
  const real = (dtype === 'float32' || dtype === 'float64') && !NO_INPUT.has(op)
  const forms = FORMS.filter((form) => typeof methods[form] === 'function').flatMap((form) => {
    const traits: Trait[] = ['empty', 'offset', 'long']
    if (form === 'strided') traits.push('0-d', 'gaps')
    if (form === 'strided' && !NO_INPUT.has(op)) traits.push('broadcast')
    if (form === 'flat' && IN_PLACE.has(op)) traits.push('in place')
    if (real) traits.push('NaN')
    if (real && !NO_INFINITY.has(op)) traits.push('infinite')
    if (real && ELEMENT_WISE.has(op)) traits.push('-0', 'denormal')
    return traits.map((trait) => `${form} ${trait}`)
  })
  return ['guarded', ...forms]
}
