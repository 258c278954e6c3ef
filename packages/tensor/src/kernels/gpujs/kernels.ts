/**
 * Kernels of the gpujs backend by family: each brings its operands into dense float32 arrays, runs sources of `sources.ts` through the
 * compiler and copies the results out (gpu.js cannot write into a caller's buffer). Gathering strided operands, converting bool and int32
 * operands to float32 and copying results are data movement, which the host does.
 */
import { PostgradError } from '@postgrad/base'
import type { TypedArray } from '../../values/dtype.js'
import { gathered } from '../js/movement.js'
import { denseStrides, type Row2, walk2 } from '../js/walk.js'
import type {
  ArgsortKernel,
  AxpyKernel,
  BinaryKernel,
  Dims,
  GradKernel,
  GradOp,
  GradRowsKernel,
  GradRowsOp,
  IndexKernel,
  MatmulKernel,
  NllBackwardKernel,
  NllKernel,
  ProductBackwardKernel,
  ReduceKernel,
  ReduceOp,
  ScanKernel,
  ScanOp,
  SoftmaxKernel,
  SoftmaxOp,
  UnaryKernel,
  UnaryOp,
  VarianceKernel,
  WhereKernel,
} from '../table/table.js'
import type { Argument, Constants, KernelCompiler } from './compiler.js'
import {
  AXPY,
  binarySource,
  DEVIATION,
  type GpuBinaryOp,
  gradSource,
  MATMUL,
  NLL,
  NLL_BACKWARD,
  PRODUCT_BACKWARD,
  RANK,
  REDUCTION,
  SCAN,
  SOFTMAX,
  SOFTMAX_BACKWARD,
  SUM_AT_INDICES,
  unarySource,
  VARIANCE,
  WHERE,
} from './sources.js'

type F32 = Float32Array

/** Integers up to here are exact in float32, and so are indices in kernels. */
export const INDEX_MAX = 2 ** 24

/** @throws KERNEL_UNSUPPORTED when an operand has more elements than a kernel can index */
export function checkIndexable(op: string, label: string, elements: number): void {
  if (elements > INDEX_MAX) {
    throw new PostgradError('KERNEL_UNSUPPORTED', {
      op,
      message: `device '${label}' has no kernel for ${elements} elements: gpu.js computes indices in float32, which is exact up to ${INDEX_MAX}`,
      remedy: "Split the operands with narrow(), or run it on another device: withDevice('wasm', fn).",
      values: { device: label, op, elements },
    })
  }
}

/** `n` elements (one, for step 0) as float32, without a copy where that is possible. */
export function dense(x: TypedArray, offset: number, n: number): F32 {
  if (x.constructor !== Float32Array) return Float32Array.from(x.subarray(offset, offset + n))
  return offset === 0 && x.length === n ? (x as F32) : (x.subarray(offset, offset + n) as F32)
}

function elementsOf(shape: Dims): number {
  let n = 1
  for (let d = 0; d < shape.length; d++) n *= shape[d]!
  return n
}

/** A dense float32 copy of a strided operand. */
function gather(shape: Dims, x: TypedArray, offset: number, strides: Dims): F32 {
  if (x.constructor === Float32Array) return gathered(shape, x as F32, offset, strides)
  const out = new Float32Array(elementsOf(shape))
  walk2(convert, shape, x, offset, strides, out, 0, denseStrides(shape))
  return out
}

const convert: Row2<TypedArray, TypedArray> = (n, x, xo, xs, out, oo, os) => {
  for (let i = 0; i < n; i++) out[oo + i * os] = x[xo + i * xs]!
}

function scatter(shape: Dims, from: F32, out: TypedArray, offset: number, strides: Dims): void {
  walk2(convert, shape, from as TypedArray, 0, denseStrides(shape), out, offset, strides)
}

export class GpuKernels {
  readonly #compiler: KernelCompiler

  constructor(compiler: KernelCompiler) {
    this.#compiler = compiler
  }

  /** One thread per element. */
  #run(op: string, key: string, source: () => string, threads: number, constants: Constants, args: readonly Argument[]): F32 {
    for (let i = 0; i < args.length; i++) {
      const arg = args[i]!
      if (typeof arg !== 'number') checkIndexable(op, 'gpujs', arg.length)
    }
    checkIndexable(op, 'gpujs', threads)
    return this.#compiler.run(key, source, [threads], constants, args) as F32
  }

  /** The same for the kernels of other files. @throws KERNEL_UNSUPPORTED for too many elements, KERNEL_MODE */
  launch(op: string, key: string, source: () => string, threads: number, constants: Constants, args: readonly Argument[]): F32 {
    return this.#run(op, key, source, threads, constants, args)
  }

  unary<A extends TypedArray>(op: UnaryOp): UnaryKernel<A> {
    const source = () => unarySource(op)
    const run = (n: number, x: F32, out: A, oo: number, p0: number, p1: number) => {
      // An infinite power does not see signs: JavaScript's (-1)^∞ would be NaN where C's is 1.
      if (op === 'pow' && Math.abs(p0) === Number.POSITIVE_INFINITY) x = x.map(Math.abs)
      out.set(this.#run(op, `${op}|${n}`, source, n, {}, [x, p0, p1]), oo)
    }
    return {
      flat(n, x, xo, out, oo, p0, p1) {
        if (n > 0) run(n, dense(x, xo, n), out, oo, p0, p1)
      },
      strided(shape, x, xo, xStrides, out, oo, p0, p1) {
        const n = elementsOf(shape)
        if (n > 0) run(n, gather(shape, x, xo, xStrides), out, oo, p0, p1)
      },
    }
  }

  /** For float32, and for bool, whose 0 and 1 are exact in float32 (the caller gives the operation that means or, and). */
  binary<A extends TypedArray, O extends TypedArray>(op: GpuBinaryOp): BinaryKernel<A, O> {
    const source = () => binarySource(op)
    const run = (n: number, a: F32, aStep: number, b: F32, bStep: number) =>
      this.#run(op, `${op}|${n}|${aStep}${bStep}`, source, n, { aStep, bStep }, [a, b])
    return {
      flat(n, a, ao, as, b, bo, bs, out, oo) {
        if (n > 0) out.set(run(n, dense(a, ao, as === 0 ? 1 : n), as, dense(b, bo, bs === 0 ? 1 : n), bs), oo)
      },
      strided(shape, a, ao, aStrides, b, bo, bStrides, out, oo, outStrides) {
        const n = elementsOf(shape)
        if (n > 0) scatter(shape, run(n, gather(shape, a, ao, aStrides), 1, gather(shape, b, bo, bStrides), 1), out, oo, outStrides)
      },
    }
  }

  where<A extends TypedArray>(): WhereKernel<A> {
    const run = (n: number, c: F32, cStep: number, a: F32, aStep: number, b: F32, bStep: number) =>
      this.#run('where', `where|${n}|${cStep}${aStep}${bStep}`, () => WHERE, n, { cStep, aStep, bStep }, [c, a, b])
    return {
      flat(n, c, co, cs, a, ao, as, b, bo, bs, out, oo) {
        if (n === 0) return
        const cond = dense(c, co, cs === 0 ? 1 : n)
        out.set(run(n, cond, cs, dense(a, ao, as === 0 ? 1 : n), as, dense(b, bo, bs === 0 ? 1 : n), bs), oo)
      },
      strided(shape, c, co, cs, a, ao, as, b, bo, bs, out, oo) {
        const n = elementsOf(shape)
        if (n > 0) out.set(run(n, gather(shape, c, co, cs), 1, gather(shape, a, ao, as), 1, gather(shape, b, bo, bs), 1), oo)
      },
    }
  }

  axpy(): AxpyKernel<F32> {
    const run = (n: number, alpha: number, x: F32, xStep: number, held: F32) =>
      this.#run('axpy', `axpy|${n}|${xStep}`, () => AXPY, n, { xStep }, [held, x, alpha])
    return {
      flat(n, alpha, x, xo, xs, out, oo) {
        if (n > 0) out.set(run(n, alpha, dense(x, xo, xs === 0 ? 1 : n), xs, dense(out, oo, n)), oo)
      },
      strided(shape, alpha, x, xo, xs, out, oo, os) {
        const n = elementsOf(shape)
        if (n > 0) scatter(shape, run(n, alpha, gather(shape, x, xo, xs), 1, gather(shape, out, oo, os)), out, oo, os)
      },
    }
  }

  #reduce(op: ReduceOp, outer: number, k: number, inner: number, x: F32): F32 {
    return this.#run(op, `${op}|${outer}|${k}|${inner}`, () => REDUCTION[op], outer * inner, { k, inner }, [x])
  }

  reduce<A extends TypedArray, O extends TypedArray>(op: ReduceOp): ReduceKernel<A, O> {
    return {
      run: (outer, k, inner, x, xo, out, oo) => {
        if (outer * inner === 0) return
        if (k === 0) out.fill(op === 'prod' ? 1 : 0, oo, oo + outer * inner)
        else out.set(this.#reduce(op, outer, k, inner, dense(x, xo, outer * k * inner)), oo)
      },
    }
  }

  variance(): VarianceKernel<F32> {
    return {
      run: (outer, k, inner, x, xo, out, oo, correction, root) => {
        if (outer * inner === 0) return
        if (k === 0) {
          out.fill(Number.NaN, oo, oo + outer * inner)
          return
        }
        const args = [dense(x, xo, outer * k * inner), Math.max(0, k - correction)]
        out.set(
          this.#run(
            'variance',
            `variance|${root}|${outer}|${k}|${inner}`,
            () => (root ? DEVIATION : VARIANCE),
            outer * inner,
            { k, inner },
            args,
          ),
          oo,
        )
      },
    }
  }

  /** Ranks by gpu.js; putting each index where its rank says moves data. */
  argsort<A extends TypedArray>(): ArgsortKernel<A> {
    return {
      run: (outer, k, inner, x, xo, out, oo, descending) => {
        const n = outer * k * inner
        if (n === 0) return
        const constants = { k, inner, descending: descending ? 1 : 0 }
        const ranks = this.#run('argsort', `argsort|${outer}|${k}|${inner}|${descending}`, () => RANK, n, constants, [dense(x, xo, n)])
        for (let i = 0; i < n; i++) {
          const place = Math.floor(i / inner) % k
          out[oo + i + (ranks[i]! - place) * inner] = place
        }
      },
    }
  }

  gradient(op: GradOp): GradKernel<F32> {
    return {
      flat: (n, g, go, gStep, x, xo, out, oo, p0, p1) => {
        if (n === 0) return
        const args = [dense(g, go, gStep === 0 ? 1 : n), dense(x, xo, n), p0, p1]
        out.set(
          this.#run(op, `${op}|${n}|${gStep}`, () => gradSource(op), n, { gStep }, args),
          oo,
        )
      },
    }
  }

  gradientRows(op: GradRowsOp): GradRowsKernel<F32> {
    return {
      run: (outer, k, inner, g, go, y, yo, out, oo) => {
        const n = outer * k * inner
        if (n === 0) return
        const size = `${outer}|${k}|${inner}`
        const constants = { k, inner }
        const grad = dense(g, go, n)
        const result = dense(y, yo, n)
        const sums =
          op === 'logSoftmaxBackward'
            ? this.#reduce('sum', outer, k, inner, grad)
            : this.#run(op, `softmaxSums|${size}`, () => SOFTMAX_BACKWARD.softmaxSums, outer * inner, constants, [grad, result])
        out.set(
          this.#run(op, `${op}|${size}`, () => SOFTMAX_BACKWARD[op], n, constants, [grad, result, sums]),
          oo,
        )
      },
    }
  }

  scan(op: ScanOp): ScanKernel<F32> {
    return {
      run: (outer, k, inner, x, xo, out, oo) => {
        const n = outer * k * inner
        if (n === 0) return
        out.set(
          this.#run(op, `${op}|${outer}|${k}|${inner}`, () => SCAN[op], n, { k, inner }, [dense(x, xo, n)]),
          oo,
        )
      },
    }
  }

  productBackward(op: 'prodBackward' | 'cumprodBackward'): ProductBackwardKernel<F32> {
    return {
      run: (outer, k, inner, grad, go, x, xo, out, oo) => {
        const n = outer * k * inner
        if (n === 0) return
        const args = [dense(grad, go, op === 'prodBackward' ? outer * inner : n), dense(x, xo, n)]
        out.set(
          this.#run(op, `${op}|${outer}|${k}|${inner}`, () => PRODUCT_BACKWARD[op], n, { k, inner }, args),
          oo,
        )
      },
    }
  }

  softmax(op: SoftmaxOp): SoftmaxKernel<F32> {
    return {
      run: (outer, k, inner, x, xo, out, oo) => {
        const n = outer * k * inner
        if (n === 0) return
        const input = dense(x, xo, n)
        const size = `${outer}|${k}|${inner}`
        const constants = { k, inner }
        const maxima = this.#reduce('amax', outer, k, inner, input)
        const exponentials = this.#run(op, `exponentials|${size}`, () => SOFTMAX.exponentials, n, constants, [input, maxima])
        const sums = this.#reduce('sum', outer, k, inner, exponentials)
        const args = op === 'softmax' ? [exponentials, sums] : [input, maxima, sums]
        out.set(
          this.#run(op, `${op}|${size}`, () => SOFTMAX[op], n, constants, args),
          oo,
        )
      },
    }
  }

  /** One kernel run per batch entry; transposes are strides. */
  matmul(): MatmulKernel<F32> {
    return {
      run: (batch, m, n, k, a, ao, aBatch, aRow, aCol, b, bo, bBatch, bRow, bCol, out, oo) => {
        if (batch * m * n === 0) return
        if (k === 0) {
          out.fill(0, oo, oo + batch * m * n)
          return
        }
        const aSpan = (m - 1) * aRow + (k - 1) * aCol + 1
        const bSpan = (k - 1) * bRow + (n - 1) * bCol + 1
        for (const elements of [aSpan, bSpan, m * n]) checkIndexable('matmul', 'gpujs', elements)
        const key = `matmul|${m}|${n}|${k}|${aRow}|${aCol}|${bRow}|${bCol}`
        const constants = { k, aRow, aCol, bRow, bCol }
        for (let t = 0; t < batch; t++) {
          const args = [dense(a, ao + t * aBatch, aSpan), dense(b, bo + t * bBatch, bSpan)]
          // Two dimensions are a third faster than one here; the result is an array of rows.
          const rows = this.#compiler.run(key, () => MATMUL, [n, m], constants, args) as readonly F32[]
          const to = oo + t * m * n
          for (let i = 0; i < m; i++) out.set(rows[i]!, to + i * n)
        }
      },
    }
  }

  nll(): NllKernel<F32> {
    return {
      run: (n, classes, x, xo, target, to, out, oo) => {
        if (n === 0) return
        const args = [dense(x, xo, n * classes), dense(target, to, n)]
        out.set(
          this.#run('nll', `nll|${n}|${classes}`, () => NLL, n, { classes }, args),
          oo,
        )
      },
    }
  }

  nllBackward(): NllBackwardKernel<F32> {
    return {
      run: (n, classes, grad, go, gradStep, target, to, out, oo) => {
        if (n * classes === 0) return
        const args = [dense(grad, go, gradStep === 0 ? 1 : n), dense(target, to, n)]
        const key = `nllBackward|${n}|${classes}|${gradStep}`
        out.set(
          this.#run('nllBackward', key, () => NLL_BACKWARD, n * classes, { classes, gradStep }, args),
          oo,
        )
      },
    }
  }

  sumAtIndices(op: 'indexAdd' | 'scatterAdd'): IndexKernel<F32> {
    return {
      run: (outer, rows, n, inner, x, xo, index, io, out, oo) => {
        const elements = outer * n * inner
        if (elements === 0) return
        const total = outer * rows * inner
        const args = [dense(out, oo, total), dense(x, xo, elements), dense(index, io, op === 'indexAdd' ? n : elements)]
        const constants = { rows, n, inner }
        out.set(
          this.#run(op, `${op}|${outer}|${rows}|${n}|${inner}`, () => SUM_AT_INDICES[op], total, constants, args),
          oo,
        )
      },
    }
  }
}
