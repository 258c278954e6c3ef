/** Element-wise kernels of the gpujs backend: those of ops whose rows have the body of a gpu.js function, and two more. Below: `kernels.ts`. */
import type { TypedArray } from '../../values/dtype.js'
import { type Functions, functionsOf } from '../elementwise/definition.js'
import { cellsOfRows, type ElementwiseOp } from '../elementwise/rows.js'
import {
  type ArrayKernelTable,
  type AxpyKernel,
  type BinaryKernel,
  type GradKernel,
  isUnsupported,
  type UnaryKernel,
  type Unsupported,
  type WhereKernel,
} from '../table/table.js'
import { dense, elementsOf, FLOAT64, float, type GpuKernels, gather, INT32, real, scatter } from './kernels.js'
import { AXPY, binarySource, gradSource, unarySource, WHERE } from './sources.js'

type F32 = Float32Array

function unary<A extends TypedArray>(gpu: GpuKernels, op: string, body: string): UnaryKernel<A> {
  const source = () => unarySource(body)
  const run = (n: number, x: F32, out: A, oo: number, p0: number, p1: number) => {
    out.set(gpu.launch(op, `${op}|${n}`, source, n, {}, [x, p0, p1]), oo)
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

/** For float32, and for bool, whose 0 and 1 are exact in float32 (the row gives the body that means or, and). */
function binary<A extends TypedArray, O extends TypedArray>(gpu: GpuKernels, op: string, body: string): BinaryKernel<A, O> {
  const source = () => binarySource(body)
  const run = (n: number, a: F32, aStep: number, b: F32, bStep: number) =>
    gpu.launch(op, `${op}|${n}|${aStep}${bStep}`, source, n, { aStep, bStep }, [a, b])
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

function where<A extends TypedArray>(gpu: GpuKernels): WhereKernel<A> {
  const run = (n: number, c: F32, cStep: number, a: F32, aStep: number, b: F32, bStep: number) =>
    gpu.launch('where', `where|${n}|${cStep}${aStep}${bStep}`, () => WHERE, n, { cStep, aStep, bStep }, [c, a, b])
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

function axpy(gpu: GpuKernels): AxpyKernel<F32> {
  const run = (n: number, alpha: number, x: F32, xStep: number, held: F32) =>
    gpu.launch('axpy', `axpy|${n}|${xStep}`, () => AXPY, n, { xStep }, [held, x, alpha])
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

function gradient(gpu: GpuKernels, op: string, body: string): GradKernel<F32> {
  return {
    flat: (n, g, go, gStep, x, xo, out, oo, p0, p1) => {
      if (n === 0) return
      const args = [dense(g, go, gStep === 0 ? 1 : n), dense(x, xo, n), p0, p1]
      out.set(
        gpu.launch(op, `${op}|${n}|${gStep}`, () => gradSource(body), n, { gStep }, args),
        oo,
      )
    },
  }
}

/** `of` makes the kernel of a body; the one of bool may be another. Where the row has no function there is no kernel, for the row's reason. */
function cellsOf<K extends object>(row: Functions<object>, op: string, of: (op: string, body: string) => K) {
  const kernel = (f: object, name: string, body = ''): K | Unsupported => (isUnsupported(f) ? f : of(name, body))
  const { real, int32, bool } = functionsOf(row)
  return {
    float32: kernel(real, op, row.gpujs),
    float64: isUnsupported(real) ? real : FLOAT64,
    int32: isUnsupported(int32) ? int32 : INT32,
    bool: kernel(bool, row.gpujsBool ? `${op} of bool` : op, row.gpujsBool ?? row.gpujs),
  }
}

export function cells(gpu: GpuKernels) {
  const unaryOf = (op: string, body: string): UnaryKernel<F32> => unary(gpu, op, body)
  const binaryOf = (op: string, body: string): BinaryKernel<F32, TypedArray> => binary(gpu, op, body)
  return {
    ...(cellsOfRows({
      unary: (row, op) => cellsOf(row, op, unaryOf),
      binary: (row, op) => cellsOf(row, op, binaryOf),
      compare: ({ js, gpujs }, op) => cellsOf({ js, int32: 'js', bool: 'js', gpujs }, op, binaryOf),
      grad: ({ gpujs }, op) => real(gradient(gpu, op, gpujs)),
    }) as Pick<ArrayKernelTable, ElementwiseOp>),
    where: { ...float(where<F32>(gpu)), bool: where<Uint8Array>(gpu) },
    axpy: float(axpy(gpu)),
  }
}
