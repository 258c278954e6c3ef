/**
 * The contract of kernels (`table.ts`) as a suite: every op × dtype of a backend over shapes, steps, strides and special values, compared
 * with the reference backend; unsupported cells must say why. Each backend's test is a fixture that calls `kernelSuite`.
 *
 * The whole output array is compared, margins included, after it was filled with rubbish: a kernel must write all of its output and nothing
 * else. Random numbers come from a seed, which stands in the name of the suite.
 */
import { describe, expect, test } from '@jest/globals'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { allocate, DTYPES, type DType, type TypedArray } from '../dtype.js'
import { createReferenceBackend } from './reference/backend.js'
import {
  type ArgsortKernel,
  type AxpyKernel,
  type Backend,
  BINARY_OPS,
  type BinaryKernel,
  COMPARE_OPS,
  type ConvGeometry,
  type ConvKernel,
  type CopyKernel,
  type FillKernel,
  INDEX_OPS,
  type IndexKernel,
  type IndexOp,
  isUnsupported,
  KERNEL_OPS,
  type KernelOp,
  type MatmulKernel,
  type NllBackwardKernel,
  type NllKernel,
  type ProductBackwardKernel,
  REDUCE_OPS,
  type ReduceKernel,
  type ScanKernel,
  type SoftmaxKernel,
  UNARY_OPS,
  type UnaryKernel,
  type VarianceKernel,
  type WhereKernel,
} from './table.js'

export interface KernelSuiteOptions {
  readonly seed: number
  /** Ops of which every bit must agree with the reference (its arithmetic is correctly rounded), for these dtypes. */
  readonly exact: (op: KernelOp, dtype: DType) => boolean
  /** Special inputs that this backend treats differently, by op, each with its reason; they are left out. */
  readonly leaveOut?: Readonly<Partial<Record<KernelOp, { readonly values: readonly number[]; readonly reason: string }>>>
  /** The largest number of elements that is tried; slow backends take fewer. */
  readonly elementsMax?: number
  /** Shapes of element-wise operations, instead of all of the suite's. */
  readonly shapes?: readonly (readonly number[])[]
  /** What to compare with, instead of the reference backend. */
  readonly expected?: Backend
}

// In jest's realm a look-up of a global costs more than what the loops below do with it.
const { floor } = Math
const { isNaN: isNan } = Number

type Any = TypedArray
/** What is common to all families, so that one test function can call them. */
type Run<K> = (kernel: K, out: Any) => void

const SHAPES: readonly (readonly number[])[] = [
  [],
  [1],
  [7],
  [0],
  [3, 0, 2],
  [4, 5],
  [2, 3, 4],
  [2, 1, 3, 2],
  [33],
  [97],
  [3, 130],
  [3, 2, 5, 9],
  [35, 33],
  [5000],
]
const EXPONENTS = [2, 0, 1, -1, 0.5, -0.5, 3, 2.5, Number.NaN, Infinity, -Infinity]
/** p0 and p1 of functions that have some. */
const PARAMETERS: Readonly<Partial<Record<KernelOp, readonly (readonly number[])[]>>> = {
  leakyRelu: [[0.01], [-0.5], [0]],
  elu: [[1], [0.3]],
  softplus: [
    [1, 20],
    [2, 5],
  ],
}
const RUBBISH = 77
const MARGIN = 3

const SPECIAL: Readonly<Record<DType, readonly number[]>> = {
  float32: [
    0,
    -0,
    1,
    -1,
    0.5,
    Number.NaN,
    Infinity,
    -Infinity,
    1e-40,
    -1e-40,
    3.4e38,
    -3.4e38,
    1e-30,
    88.7,
    -88.7,
    -104,
    9.02,
    16777217,
    2147483648,
  ],
  float64: [0, -0, 1, -1, 0.5, Number.NaN, Infinity, -Infinity, 5e-324, 1e308, -1e308, 1e-300, 709, -745, 2 ** 53],
  int32: [0, 1, -1, 2147483647, -2147483648, 65536, -65537, 16777217],
  bool: [0, 1],
}

export function kernelSuite(name: string, create: () => Backend, options: KernelSuiteOptions): void {
  const backend = create()
  const reference = createReferenceBackend()

  describe(`kernels of ${name} (seed ${options.seed})`, () => {
    for (const op of KERNEL_OPS) {
      for (const dtype of DTYPES) {
        const entry = backend.kernels[op][dtype]
        const expected = reference.kernels[op][dtype]
        if (isUnsupported(entry)) {
          test(`${op} ${dtype}: unsupported, with a reason`, () => {
            expect(entry.unsupported.length).toBeGreaterThan(20)
          })
          continue
        }
        test(`${op} ${dtype}`, () => {
          // What PyTorch does not have, no backend should pretend to have.
          if (isUnsupported(expected)) throw new Error(`the reference has no ${op} on ${dtype}: ${expected.unsupported}`)
          expect(checkKernel(op, dtype, entry, options)).toBeGreaterThan(0)
        })
        test(`${op} ${dtype}: says which code runs`, () => {
          expect(backend.variantOf(op, dtype, [3, 3])).toMatch(/\w/)
          expect(backend.variantOf(op, dtype, [300, 300])).toBe(backend.variantOf(op, dtype, [300, 300]))
        })
      }
    }
  })
}

/** Checks one kernel against the reference's and returns the number of comparisons. @throws an Error at the first difference */
export function checkKernel(op: KernelOp, dtype: DType, kernel: object, options: KernelSuiteOptions): number {
  const reference = (options.expected ?? createReferenceBackend()).kernels[op][dtype]
  const cell = new Cell(op, dtype, kernel, reference, options, options.elementsMax ?? Number.POSITIVE_INFINITY)
  cell.check()
  return cell.checked
}

/** A view on a flat array. */
interface Layout {
  readonly name: string
  readonly strides: readonly number[]
  readonly offset: number
  readonly length: number
}

function dense(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length)
  let step = 1
  for (let d = shape.length - 1; d >= 0; d--) {
    strides[d] = step
    step *= shape[d]!
  }
  return strides
}

function spanOf(shape: readonly number[], strides: readonly number[]): number {
  let last = 0
  for (let d = 0; d < shape.length; d++) last += Math.max(shape[d]! - 1, 0) * strides[d]!
  return last + 1
}

function elementsOf(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1)
}

/** Dense, behind an offset, transposed, with gaps, and with each dimension repeated. */
function layouts(shape: readonly number[], repeated: boolean): Layout[] {
  const out: Layout[] = []
  const add = (name: string, strides: readonly number[], offset: number) =>
    out.push({ name, strides, offset, length: offset + spanOf(shape, strides) + MARGIN })
  add('dense', dense(shape), 0)
  add('offset', dense(shape), 5)
  if (shape.length > 1) {
    const reversed = dense([...shape].reverse()).reverse()
    add('transposed', reversed, 1)
  }
  if (shape.length > 0) {
    add(
      'gaps',
      dense(shape).map((s) => s * 2),
      2,
    )
    const wide = [...shape.slice(0, -1), shape.at(-1)! + 4]
    add('narrowed', dense(wide), 3)
  }
  if (repeated) {
    for (let d = 0; d < shape.length; d++) {
      const kept = shape.map((n, i) => (i === d ? 1 : n))
      add(
        `repeated along ${d}`,
        dense(kept).map((s, i) => (i === d ? 0 : s)),
        1,
      )
    }
    add(
      'one element',
      shape.map(() => 0),
      2,
    )
  }
  return out
}

/** One op × dtype: the kernel under test beside the reference's. */
class Cell {
  checked = 0
  readonly #op: KernelOp
  readonly #dtype: DType
  readonly #kernel: object
  readonly #reference: object
  readonly #exact: boolean
  readonly #left: ReadonlySet<number>
  readonly #shapes: readonly (readonly number[])[]
  readonly #elementsMax: number
  readonly #random: () => number

  constructor(op: KernelOp, dtype: DType, kernel: object, reference: object, options: KernelSuiteOptions, elementsMax: number) {
    this.#op = op
    this.#dtype = dtype
    this.#kernel = kernel
    this.#reference = reference
    this.#exact = options.exact(op, dtype)
    this.#left = new Set(options.leaveOut?.[op]?.values)
    this.#shapes = (options.shapes ?? SHAPES).filter((shape) => elementsOf(shape) <= elementsMax)
    this.#elementsMax = elementsMax
    const generator = xoroshiro128plus(options.seed + KERNEL_OPS.indexOf(op) * 8 + DTYPES.indexOf(dtype))
    this.#random = () => (generator.next() >>> 0) / 2 ** 32
  }

  check(): void {
    const op = this.#op
    if ((UNARY_OPS as readonly string[]).includes(op)) this.#unary()
    else if ((BINARY_OPS as readonly string[]).includes(op)) this.#binary(this.#dtype)
    else if ((COMPARE_OPS as readonly string[]).includes(op)) this.#binary('bool')
    else if (op === 'prod') this.#products((outer, _k, inner) => outer * inner)
    else if ((REDUCE_OPS as readonly string[]).includes(op)) this.#reduce()
    else if (op === 'cumprod') this.#products((outer, k, inner) => outer * k * inner)
    else if (op === 'cumsum' || op === 'reverseCumsum') this.#runningSums()
    else if (op === 'argsort') this.#argsort()
    else if (op === 'variance') this.#variance()
    else if (op === 'prodBackward' || op === 'cumprodBackward') this.#productBackward()
    else if (op === 'softmax' || op === 'logSoftmax') this.#softmax()
    else if (op === 'where') this.#where()
    else if (op === 'axpy') this.#axpy()
    else if (op === 'copy') this.#copy()
    else if (op === 'fill') this.#fill()
    else if (op === 'matmul') this.#matmul()
    else if (op === 'nll') this.#nll()
    else if (op === 'nllBackward') this.#nllBackward()
    else if (op === 'conv2d' || op === 'conv2dInput' || op === 'conv2dWeight') this.#conv(op)
    else if ((INDEX_OPS as readonly string[]).includes(op)) this.#indexed(op as IndexOp)
    else throw new Error(`the suite has no test for ${op}`)
  }

  // ---- inputs

  /** Random numbers of a sensible size for the op, and every special value somewhere if it fits. */
  #values(length: number, dtype: DType = this.#dtype, special = true): Any {
    const out = allocate(dtype, length)
    for (let i = 0; i < length; i++) out[i] = this.#number(dtype)
    if (!special) return out
    const values = SPECIAL[dtype].filter((v) => !this.#isLeftOut(v))
    if (length >= values.length) for (let i = 0; i < values.length; i++) out[Math.floor(this.#random() * length)] = values[i]!
    else if (length > 0 && values.length > 0 && this.#random() < 0.5) out[0] = values[Math.floor(this.#random() * values.length)]!
    return out
  }

  #isLeftOut(value: number): boolean {
    for (const left of this.#left) if (Object.is(left, value)) return true
    return false
  }

  #number(dtype: DType): number {
    const u = this.#random()
    if (dtype === 'bool') return u < 0.5 ? 0 : 1
    if (dtype === 'int32') return floor((u - 0.5) * 2000)
    const scale = 10 ** floor(this.#random() * 4 - 2)
    return (u - 0.5) * 2 * scale
  }

  #indices(n: number, below: number): Int32Array {
    return Int32Array.from({ length: n }, () => Math.floor(this.#random() * below))
  }

  // ---- comparison

  /** Runs both kernels on equal copies of `out` and compares all of it. */
  #compare<K>(what: string, out: Any, terms: number, scale: number, run: Run<K>): void {
    const got = out.slice()
    const want = out.slice()
    run(this.#kernel as K, got)
    run(this.#reference as K, want)
    this.#equal(what, got, want, terms, scale)
  }

  #equal(what: string, got: Any, want: Any, terms: number, scale: number): void {
    this.checked++
    for (let i = 0; i < want.length; i++) {
      const g = got[i]!
      const w = want[i]!
      if (g === w ? g !== 0 || 1 / g === 1 / w : isNan(g) && isNan(w)) continue
      if (!this.#exact && close(g, w, got.constructor === Float64Array ? 1e-12 : 1e-5, terms, scale)) continue
      throw new Error(`${this.#op} ${this.#dtype}, ${what}, element ${i} of ${want.length}: got ${show(g)}, expected ${show(w)}`)
    }
  }

  #rubbish(dtype: DType, length: number): Any {
    return allocate(dtype, length).fill(dtype === 'bool' ? 1 : RUBBISH)
  }

  // ---- families

  #unary(): void {
    type K = UnaryKernel<Any>
    const params =
      this.#op === 'pow'
        ? this.#exponents()
        : this.#op === 'clamp'
          ? [
              [-0.5, 2],
              [-Infinity, 1],
              [0, Infinity],
              [2, -2],
            ]
          : (PARAMETERS[this.#op] ?? [[0, 0]])
    for (const shape of this.#shapes) {
      const n = elementsOf(shape)
      for (const [p0 = 0, p1 = 0] of params) {
        const x = this.#values(n + 2 * MARGIN)
        const out = this.#rubbish(this.#dtype, n + 2 * MARGIN)
        const what = `[${shape}] p ${p0}, ${p1}`
        this.#compare<K>(`flat ${what}`, out, 1, 0, (k, o) => k.flat(n, x, 2, o, MARGIN, p0, p1))
        this.#compare<K>(`in place ${what}`, x, 1, 0, (k, o) => k.flat(n, o, 2, o, 2, p0, p1))
        // The strides do not depend on the parameters: the first ones are enough.
        for (const layout of p0 === params[0]![0] ? layouts(shape, true) : []) {
          const view = this.#values(layout.length)
          this.#compare<K>(`${layout.name} ${what}`, out, 1, 0, (k, o) =>
            k.strided(shape, view, layout.offset, layout.strides, o, MARGIN, p0, p1),
          )
        }
      }
    }
  }

  #exponents(): number[][] {
    return EXPONENTS.filter((e) => this.#dtype !== 'int32' || (Number.isInteger(e) && e >= 0)).map((e) => [e, 0])
  }

  #binary(outDtype: DType): void {
    type K = BinaryKernel<Any, Any>
    for (const shape of this.#shapes) {
      const n = elementsOf(shape)
      const out = this.#rubbish(outDtype, n + 2 * MARGIN)
      for (const [aStep, bStep] of [
        [1, 1],
        [1, 0],
        [0, 1],
        [0, 0],
      ] as const) {
        const a = this.#values(n + 3)
        const b = this.#values(n + 3)
        for (let i = 0; i < n; i += 3) b[i] = a[i + 1]! // ties, for comparisons
        this.#compare<K>(`flat [${shape}] steps ${aStep} ${bStep}`, out, 1, 0, (k, o) => k.flat(n, a, 1, aStep, b, 0, bStep, o, MARGIN))
        if (aStep === 1 && outDtype === this.#dtype) {
          this.#compare<K>(`in place [${shape}] step ${bStep}`, a, 1, 0, (k, o) => k.flat(n, o, 1, 1, b, 0, bStep, o, 1))
        }
      }
      const views = layouts(shape, true)
      for (let i = 0; i < views.length; i++) {
        const left = views[i]!
        const right = views[(i + 1) % views.length]!
        const target = layouts(shape, false)[i % layouts(shape, false).length]!
        const a = this.#values(left.length)
        const b = this.#values(right.length)
        const to = this.#rubbish(outDtype, target.length)
        this.#compare<K>(`[${shape}] ${left.name} with ${right.name} to ${target.name}`, to, 1, 0, (k, o) =>
          k.strided(shape, a, left.offset, left.strides, b, right.offset, right.strides, o, target.offset, target.strides),
        )
      }
    }
  }

  #where(): void {
    type K = WhereKernel<Any>
    for (const shape of this.#shapes) {
      const n = elementsOf(shape)
      const out = this.#rubbish(this.#dtype, n + 2 * MARGIN)
      for (const steps of [
        [1, 1, 1],
        [1, 0, 1],
        [1, 1, 0],
        [0, 1, 1],
        [1, 0, 0],
      ] as const) {
        const c = this.#values(n + 2, 'bool') as Uint8Array
        const a = this.#values(n + 2)
        const b = this.#values(n + 2)
        this.#compare<K>(`flat [${shape}] steps ${steps}`, out, 1, 0, (k, o) =>
          k.flat(n, c, 1, steps[0], a, 2, steps[1], b, 0, steps[2], o, MARGIN),
        )
      }
      const views = layouts(shape, true)
      for (let i = 0; i < views.length; i++) {
        const lc = views[i]!
        const la = views[(i + 1) % views.length]!
        const lb = views[(i + 2) % views.length]!
        const c = this.#values(lc.length, 'bool') as Uint8Array
        const a = this.#values(la.length)
        const b = this.#values(lb.length)
        this.#compare<K>(`[${shape}] ${lc.name}, ${la.name}, ${lb.name}`, out, 1, 0, (k, o) =>
          k.strided(shape, c, lc.offset, lc.strides, a, la.offset, la.strides, b, lb.offset, lb.strides, o, MARGIN),
        )
      }
    }
  }

  #axpy(): void {
    type K = AxpyKernel<Any>
    const alphas = this.#dtype === 'int32' ? [1, -3] : [1, -0.1, 0]
    for (const shape of this.#shapes) {
      const n = elementsOf(shape)
      for (const alpha of alphas) {
        const held = this.#values(n + 4)
        const x = this.#values(n + 4)
        const scale = this.#dtype === 'int32' ? 0 : 1
        for (const step of [0, 1]) {
          this.#compare<K>(`flat [${shape}] alpha ${alpha} step ${step}`, held, 1, scale, (k, o) => k.flat(n, alpha, x, 1, step, o, 2))
        }
        for (const layout of layouts(shape, true)) {
          for (const target of layouts(shape, false)) {
            const view = this.#values(layout.length)
            const to = this.#values(target.length)
            this.#compare<K>(`[${shape}] ${layout.name} to ${target.name} alpha ${alpha}`, to, 1, scale, (k, o) =>
              k.strided(shape, alpha, view, layout.offset, layout.strides, o, target.offset, target.strides),
            )
          }
        }
      }
    }
  }

  #copy(): void {
    type K = CopyKernel<Any>
    for (const from of DTYPES) {
      for (const shape of this.#shapes) {
        const n = elementsOf(shape)
        const x = this.#values(n + 4, from)
        this.#compare<K>(`flat [${shape}] from ${from}`, this.#rubbish(this.#dtype, n + 6), 1, 0, (k, o) => k.flat(n, x, 1, o, 2))
        for (const layout of layouts(shape, true)) {
          for (const target of layouts(shape, false)) {
            const view = this.#values(layout.length, from)
            this.#compare<K>(
              `[${shape}] from ${from} ${layout.name} to ${target.name}`,
              this.#rubbish(this.#dtype, target.length),
              1,
              0,
              (k, o) => k.strided(shape, view, layout.offset, layout.strides, o, target.offset, target.strides),
            )
          }
        }
      }
    }
  }

  #fill(): void {
    type K = FillKernel<Any>
    for (const shape of this.#shapes) {
      const n = elementsOf(shape)
      for (const value of [0, 1, -3, 2.5, Number.NaN]) {
        if (this.#dtype === 'int32' && !Number.isInteger(value)) continue
        this.#compare<K>(`flat [${shape}] ${value}`, this.#rubbish(this.#dtype, n + 6), 1, 0, (k, o) => k.flat(n, value, o, 2))
        for (const target of layouts(shape, false)) {
          this.#compare<K>(`[${shape}] ${value} ${target.name}`, this.#rubbish(this.#dtype, target.length), 1, 0, (k, o) =>
            k.strided(shape, value, o, target.offset, target.strides),
          )
        }
      }
    }
  }

  /** [outer, k, inner] of reductions and softmax. */
  #fibres(emptyToo: boolean): (readonly [number, number, number])[] {
    const all: (readonly [number, number, number])[] = [
      [1, 1, 1],
      [1, 9, 1],
      [3, 5, 1],
      [0, 4, 1],
      [2, 5, 0],
      [2, 3, 4],
      [1, 20, 33],
      [7, 65, 1],
      [1, 2500, 1],
      [2, 3, 2100],
      [40, 100, 1],
      [1, 4099, 1],
    ]
    if (emptyToo) all.push([3, 0, 2], [1, 0, 1])
    return all.filter(([o, k, i]) => o * k * i <= 5000 || !this.#isSlow())
  }

  #isSlow(): boolean {
    return this.#elementsMax < 5000
  }

  #reduce(): void {
    type K = ReduceKernel<Any, Any>
    const outDtype = this.#op === 'argmax' || this.#op === 'argmin' ? 'int32' : this.#dtype
    for (const [outer, k, inner] of this.#fibres(this.#op === 'sum')) {
      for (const special of [false, true]) {
        const x = this.#values(outer * k * inner + 4, this.#dtype, special && this.#op !== 'sum')
        if (this.#op !== 'sum') for (let i = 0; i + 7 < x.length; i += 5) x[i] = x[i + 7]! // ties
        const scale = maxAbs(x)
        const out = this.#rubbish(outDtype, outer * inner + 6)
        this.#compare<K>(`[${outer}, ${k}, ${inner}]`, out, k, scale, (kernel, o) => kernel.run(outer, k, inner, x, 2, o, 3))
      }
    }
    for (const value of SPECIAL[this.#dtype].filter((v) => !this.#isLeftOut(v) && (this.#op !== 'sum' || !Number.isFinite(v)))) {
      const x = this.#values(300, this.#dtype, false)
      x[130] = value
      for (const [outer, k, inner] of [
        [1, 300, 1],
        [3, 100, 1],
        [1, 3, 100],
      ] as const) {
        this.#compare<K>(`[${outer}, ${k}, ${inner}] with ${value}`, this.#rubbish(outDtype, 100), k, 10, (kernel, o) =>
          kernel.run(outer, k, inner, x, 0, o, 0),
        )
      }
    }
  }

  /** Values around 1 (of either sign): the product of thousands of them stays in range. */
  #factors(length: number): Any {
    const out = allocate(this.#dtype, length)
    for (let i = 0; i < length; i++) {
      const sign = this.#random() < 0.5 ? -1 : 1
      out[i] = this.#dtype === 'int32' ? Math.floor((this.#random() - 0.5) * 20) : sign * (1 + (this.#random() - 0.5) * 0.01)
    }
    return out
  }

  #products(size: (outer: number, k: number, inner: number) => number): void {
    type K = ScanKernel<Any>
    for (const [outer, k, inner] of this.#fibres(true)) {
      const n = size(outer, k, inner)
      const x = this.#factors(outer * k * inner + 4)
      this.#compare<K>(`[${outer}, ${k}, ${inner}]`, this.#rubbish(this.#dtype, n + 6), k, 0, (kernel, o) =>
        kernel.run(outer, k, inner, x, 2, o, 3),
      )
    }
    for (const value of SPECIAL[this.#dtype].filter(
      (v) => !this.#isLeftOut(v) && !(Math.abs(v) > 1e30 && Math.abs(v) < Infinity) && !(Math.abs(v) > 0 && Math.abs(v) < 1e-35),
    )) {
      const x = this.#factors(12)
      x[7] = value
      this.#compare<K>(`with ${value}`, this.#rubbish(this.#dtype, 12), 3, 0, (kernel, o) => kernel.run(2, 3, 2, x, 0, o, 0))
    }
  }

  #runningSums(): void {
    type K = ScanKernel<Any>
    for (const [outer, k, inner] of this.#fibres(true)) {
      const n = outer * k * inner
      const x = this.#values(n + 4, this.#dtype, false)
      const scale = this.#dtype === 'int32' ? 0 : maxAbs(x)
      this.#compare<K>(`[${outer}, ${k}, ${inner}]`, this.#rubbish(this.#dtype, n + 6), k, scale, (kernel, o) =>
        kernel.run(outer, k, inner, x, 2, o, 3),
      )
    }
    for (const value of [Number.NaN, Infinity, -Infinity]) {
      if (this.#dtype === 'int32') continue
      const x = this.#values(12, this.#dtype, false)
      x[7] = value
      this.#compare<K>(`with ${value}`, this.#rubbish(this.#dtype, 12), 3, 100, (kernel, o) => kernel.run(2, 3, 2, x, 0, o, 0))
    }
  }

  #argsort(): void {
    type K = ArgsortKernel<Any>
    for (const [outer, k, inner] of this.#fibres(true)) {
      // The reference selects, which takes k² steps.
      if (k > 300) continue
      for (const descending of [false, true]) {
        const n = outer * k * inner
        const x = this.#values(n + 4)
        for (let i = 0; i + 7 < x.length; i += 5) x[i] = x[i + 7]! // ties
        this.#compare<K>(`[${outer}, ${k}, ${inner}] ${descending}`, this.#rubbish('int32', n + 6), 1, 0, (kernel, o) =>
          kernel.run(outer, k, inner, x, 2, o as Int32Array, 3, descending),
        )
      }
    }
  }

  #variance(): void {
    type K = VarianceKernel<Any>
    for (const [outer, k, inner] of this.#fibres(true)) {
      for (const correction of [1, 0, 2]) {
        const x = this.#values(outer * k * inner + 4, this.#dtype, false)
        const out = this.#rubbish(this.#dtype, outer * inner + 6)
        const scale = k === 1 ? 0 : maxAbs(x) ** 2
        this.#compare<K>(`[${outer}, ${k}, ${inner}] correction ${correction}`, out, k, scale, (kernel, o) =>
          kernel.run(outer, k, inner, x, 2, o, 3, correction),
        )
      }
    }
    for (const value of [Number.NaN, Infinity, -Infinity]) {
      const x = this.#values(300, this.#dtype, false)
      x[130] = value
      this.#compare<K>(`with ${value}`, this.#rubbish(this.#dtype, 3), 100, 1e4, (kernel, o) => kernel.run(3, 100, 1, x, 0, o, 0, 1))
    }
  }

  #productBackward(): void {
    type K = ProductBackwardKernel<Any>
    for (const [outer, k, inner] of this.#fibres(true)) {
      const n = outer * k * inner
      for (const zeros of [0, 1, 2]) {
        const x = this.#factors(n + 4)
        for (let i = 0; i < zeros && n > 0; i++) x[2 + Math.floor(this.#random() * n)] = 0
        const grad = this.#values(this.#op === 'prodBackward' ? outer * inner + 1 : n + 1, this.#dtype, false)
        const scale = maxAbs(grad)
        this.#compare<K>(`[${outer}, ${k}, ${inner}] with ${zeros} zeros`, this.#rubbish(this.#dtype, n + 6), k, scale, (kernel, o) =>
          kernel.run(outer, k, inner, grad, 1, x, 2, o, 3),
        )
      }
    }
  }

  #softmax(): void {
    type K = SoftmaxKernel<Any>
    for (const [outer, k, inner] of this.#fibres(true)) {
      const n = outer * k * inner
      const x = this.#values(n + 4, this.#dtype, false)
      this.#compare<K>(`[${outer}, ${k}, ${inner}]`, this.#rubbish(this.#dtype, n + 6), k, 1, (kernel, o) =>
        kernel.run(outer, k, inner, x, 2, o, 3),
      )
    }
    for (const row of [
      [1000, 1000, 1000],
      [-1000, 0, 1000],
      [Number.NaN, 0, 1],
      [Infinity, 0, 1],
      [-Infinity, 0, 1],
      [-Infinity, -Infinity, -Infinity],
      [3e38, -3e38, 0],
    ]) {
      const x = allocate(this.#dtype, 3)
      x.set(row)
      this.#compare<K>(`row ${row}`, this.#rubbish(this.#dtype, 3), 3, 1, (kernel, o) => kernel.run(1, 3, 1, x, 0, o, 0))
    }
  }

  #matmul(): void {
    type K = MatmulKernel<Any>
    const sizes: (readonly [number, number, number, number])[] = [
      [1, 1, 1, 1],
      [1, 3, 3, 3],
      [2, 4, 8, 5],
      [3, 5, 9, 7],
      [1, 1, 17, 40],
      [1, 19, 1, 33],
      [1, 0, 4, 3],
      [1, 4, 3, 0],
      [0, 4, 3, 2],
      [1, 37, 41, 64],
      [2, 16, 24, 33],
    ]
    // Beyond the blocks of a tiled product in every direction: rows, columns, depth.
    if (!this.#isSlow()) sizes.push([1, 9, 523, 150], [1, 67, 21, 270], [1, 10, 260, 300])
    for (const [batch, m, n, k] of sizes) {
      const kinds = [
        { name: 'dense', a: [m * k, k, 1], b: [k * n, n, 1] },
        { name: 'transposed', a: [m * k, 1, m], b: [k * n, 1, k] },
        { name: 'a transposed, b repeated', a: [m * k, 1, m], b: [0, n, 1] },
        { name: 'narrowed', a: [m * (k + 3), k + 3, 1], b: [k * (n + 5), n + 5, 1] },
        { name: 'gaps', a: [2 * m * k, 2 * k, 2], b: [3 * k * n, 3, 3 * k] },
        { name: 'expanded', a: [0, 0, 1], b: [0, 1, 0] },
        { name: 'narrowed and transposed', a: [k * (m + 2), 1, m + 2], b: [n * (k + 1), 1, k + 1] },
      ] as const
      for (const { name, a: sa, b: sb } of m * n * k > 1e5 ? kinds.slice(0, 2) : kinds) {
        const a = this.#values(3 + spanOf([batch, m, k], sa), this.#dtype, false)
        const b = this.#values(3 + spanOf([batch, k, n], sb), this.#dtype, false)
        const scale = this.#dtype === 'int32' ? 0 : maxAbs(a) * maxAbs(b)
        this.#compare<K>(
          `[${batch}, ${m}, ${k}] · [${batch}, ${k}, ${n}] ${name}`,
          this.#rubbish(this.#dtype, batch * m * n + 6),
          k,
          scale,
          (kernel, o) => kernel.run(batch, m, n, k, a, 2, sa[0], sa[1], sa[2], b, 1, sb[0], sb[1], sb[2], o, 3),
        )
      }
    }
    if (this.#dtype === 'int32') return
    for (const special of [Number.NaN, Infinity, -Infinity]) {
      for (const size of [3, 20]) {
        const a = this.#values(size * size, this.#dtype, false)
        const b = this.#values(size * size, this.#dtype, false)
        a[1] = special
        b[size] = 0
        b[size + 1] = 1
        this.#compare<K>(`${size} with ${special}`, this.#rubbish(this.#dtype, size * size), size, 100, (kernel, o) =>
          kernel.run(1, size, size, size, a, 0, 0, size, 1, b, 0, 0, size, 1, o, 0),
        )
      }
    }
  }

  #nll(): void {
    type K = NllKernel<Any>
    for (const [n, classes] of [
      [0, 3],
      [1, 1],
      [5, 7],
      [60, 11],
    ] as const) {
      const x = this.#values(n * classes + 3)
      const target = this.#indices(n + 2, classes)
      this.#compare<K>(`[${n}, ${classes}]`, this.#rubbish(this.#dtype, n + 6), 1, 0, (k, o) => k.run(n, classes, x, 3, target, 2, o, 3))
    }
  }

  #nllBackward(): void {
    type K = NllBackwardKernel<Any>
    for (const [n, classes] of [
      [0, 3],
      [1, 1],
      [5, 7],
      [60, 11],
    ] as const) {
      for (const step of [0, 1]) {
        const grad = this.#values(n + 3)
        const target = this.#indices(n + 2, classes)
        this.#compare<K>(`[${n}, ${classes}] step ${step}`, this.#rubbish(this.#dtype, n * classes + 6), 1, 0, (k, o) =>
          k.run(n, classes, grad, 1, step, target, 2, o, 3),
        )
      }
    }
  }

  #indexed(op: IndexOp): void {
    type K = IndexKernel<Any>
    const reads = op === 'indexSelect' || op === 'gather'
    const sums = op === 'indexAdd' || op === 'scatterAdd'
    for (const [outer, rows, n, inner] of [
      [1, 2, 0, 3],
      [1, 2, 5, 0],
      [0, 2, 2, 2],
      [1, 1, 1, 1],
      [1, 4, 9, 5],
      [1, 11, 20, 70],
      [3, 5, 7, 1],
      [2, 3, 8, 4],
      [1, 40, 90, 1],
    ] as const) {
      const wide = op !== 'indexSelect' && op !== 'indexAdd'
      const x = this.#values(outer * (reads ? rows : n) * inner + 2, this.#dtype, !sums)
      const index = this.#indices((wide ? outer * n * inner : n) + 1, rows)
      const size = outer * (reads ? n : rows) * inner + 6
      const out = reads ? this.#rubbish(this.#dtype, size) : this.#values(size, this.#dtype, !sums)
      const scale = !sums || this.#dtype === 'int32' ? 0 : Math.max(maxAbs(x), maxAbs(out))
      this.#compare<K>(`[${outer}, ${rows}, ${inner}] at ${n}`, out, sums ? n : 1, scale, (k, o) =>
        k.run(outer, rows, n, inner, x, 2, index, 1, o, 3),
      )
    }
  }

  #conv(op: 'conv2d' | 'conv2dInput' | 'conv2dWeight'): void {
    type K = ConvKernel<Any>
    for (const g of convGeometries(this.#isSlow())) {
      const [x, y] = [g.n * g.c * g.h * g.w, g.n * g.o * g.oh * g.ow]
      const weight = (g.o * g.c * g.kh * g.kw) / g.groups
      const [aSize, bSize, size] = op === 'conv2d' ? [x, weight, y] : op === 'conv2dInput' ? [y, weight, x] : [x, y, weight]
      const a = this.#values(aSize + 3, this.#dtype, false)
      const b = this.#values(bSize + 3, this.#dtype, false)
      const terms = op === 'conv2d' ? weight / g.o : op === 'conv2dInput' ? (g.o / g.groups) * g.kh * g.kw : g.n * g.oh * g.ow
      this.#compare<K>(JSON.stringify(g), this.#rubbish(this.#dtype, size + 6), terms, maxAbs(a) * maxAbs(b), (k, o) =>
        k.run(g, a, 2, b, 1, o, 3),
      )
    }
  }
}

/** Strides, paddings, dilations, groups, windows larger than what they read, 1 × 1, depthwise, nothing at all; large ones cut into blocks. */
function convGeometries(slow: boolean): ConvGeometry[] {
  const base = {
    n: 1,
    c: 1,
    h: 5,
    w: 6,
    o: 1,
    kh: 3,
    kw: 3,
    strideH: 1,
    strideW: 1,
    padH: 0,
    padW: 0,
    dilH: 1,
    dilW: 1,
    groups: 1,
    below: 0,
    right: 0,
  }
  const make = (changes: Partial<typeof base>): ConvGeometry => {
    const { below, right, ...g } = { ...base, ...changes }
    const extent = (size: number, k: number, stride: number, pad: number, dilation: number, more: number) =>
      Math.floor((size + 2 * pad + more - dilation * (k - 1) - 1) / stride) + 1
    const oh = extent(g.h, g.kh, g.strideH, g.padH, g.dilH, below)
    return { ...g, oh, ow: extent(g.w, g.kw, g.strideW, g.padW, g.dilW, right) }
  }
  const all = [
    {},
    { n: 2, c: 3, o: 4, padH: 1, padW: 1 },
    { n: 2, c: 4, o: 6, groups: 2, strideH: 2, strideW: 3, padH: 2, padW: 1 },
    { c: 2, o: 3, kh: 2, kw: 4, dilH: 2, dilW: 1, padH: 0, padW: 3 },
    { c: 5, o: 9, kh: 1, kw: 1, n: 3 },
    { c: 2, o: 2, kh: 1, kw: 1, strideH: 2, strideW: 2 },
    { c: 3, o: 3, groups: 3, padH: 1, padW: 1, n: 2 },
    { c: 2, o: 6, groups: 2, padH: 2, padW: 2, dilH: 2, dilW: 2, strideW: 2 },
    { h: 2, w: 2, kh: 2, kw: 2, padH: 3, padW: 3, c: 2, o: 2 },
    { kh: 2, kw: 2, below: 1, right: 1, c: 2, o: 3 },
    { h: 1, w: 20, kh: 1, kw: 5, c: 3, o: 2, padW: 2, n: 2 },
    { w: 6, padW: 6, kw: 1, kh: 1, dilW: 1, strideW: 4 },
    { n: 0, c: 2, o: 2 },
    { c: 0, o: 2 },
  ].map(make)
  if (!slow)
    all.push(
      ...[
        { n: 2, c: 16, o: 10, h: 40, w: 40, padH: 1, padW: 1 },
        { c: 40, o: 3, h: 64, w: 66, kh: 1, kw: 1 },
      ].map(make),
    )
  return all
}

/** 1e-5 (float64: 1e-12) relative, growing with √K for sums of K terms, beside the size of the terms. */
function close(got: number, want: number, tolerance: number, terms: number, scale: number): boolean {
  // A zero has its sign where it is one number's function; the sign of a sum's zero depends on its order.
  if (got === 0 && want === 0 && scale === 0) return false
  // At the edge of the range one side may round to infinity; a denormal result has few digits.
  const atLeast = tolerance === 1e-5 ? 1.2e-38 : 2.3e-308
  return Math.abs(got - want) <= tolerance * (Math.sqrt(terms) * Math.max(Math.abs(want), scale) + atLeast)
}

function maxAbs(x: Any): number {
  // Without globals in the loop: in jest's realm each look-up costs more than the rest.
  let m = 0
  for (let i = 0; i < x.length; i++) {
    const v = x[i]!
    const size = v < 0 ? -v : v
    if (size > m && size - size === 0) m = size
  }
  return m
}

function show(x: number): string {
  return Object.is(x, -0) ? '-0' : String(x)
}
