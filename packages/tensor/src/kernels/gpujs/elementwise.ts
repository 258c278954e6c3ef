/** Element-wise kernels of the gpujs backend: of ops whose rows have the body of a gpu.js function, and two more, by `kernels.ts`. */
import { type Functions, functionsOf } from '../elementwise/definition.js'
import { cellsOfRows, type ElementwiseOp } from '../elementwise/rows.js'
import type { KernelCells } from '../table/backend.js'
import type { Axpy, Binary, Grad, Unary, Where } from '../table/operands.js'
import { isUnsupported, type Unsupported } from '../table/table.js'
import type { KernelCompiler } from './compiler.js'
import { FLOAT64, float, floats, INT32, into, operand, real } from './kernels.js'
import { AXPY, binarySource, gradSource, unarySource, WHERE } from './sources.js'

const unary =
  (gpu: KernelCompiler, op: string, source: string): Unary =>
  (x, out, p0, p1) =>
    into(gpu, out, op, source, {}, [operand(x, out)[0], p0, p1])

/** For float32, and for bool, whose 0 and 1 are exact in float32 (the row gives the body that means or, and). */
const binary =
  (gpu: KernelCompiler, op: string, source: string): Binary =>
  (a, b, out) => {
    const [[x, aStep], [y, bStep]] = [operand(a, out), operand(b, out)]
    into(gpu, out, op, source, { aStep, bStep }, [x, y])
  }

const where =
  (gpu: KernelCompiler): Where =>
  (cond, a, b, out) => {
    const [[c, cStep], [x, aStep], [y, bStep]] = [operand(cond, out), operand(a, out), operand(b, out)]
    into(gpu, out, 'where', WHERE, { cStep, aStep, bStep }, [c, x, y])
  }

const axpy =
  (gpu: KernelCompiler): Axpy =>
  (alpha, x, out) => {
    const [[added, xStep], [held]] = [operand(x, out), operand(out, out)]
    into(gpu, out, 'axpy', AXPY, { xStep }, [held, added, alpha])
  }

const gradient =
  (gpu: KernelCompiler, op: string, source: string): Grad =>
  (g, x, out, p0, p1) => {
    const gStep = g.isContiguous ? 1 : 0
    into(gpu, out, op, source, { gStep }, [floats(gStep === 1 ? g : { ...g, numel: 1 }), floats(x), p0, p1])
  }

/** `of` makes the kernel of a body; bool's may differ. If the row has no function, the kernel is missing, for the row's reason. */
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

export function cells(gpu: KernelCompiler) {
  const unaryOf = (op: string, body: string) => unary(gpu, op, unarySource(body))
  const binaryOf = (op: string, body: string) => binary(gpu, op, binarySource(body))
  return {
    ...(cellsOfRows({
      unary: (row, op) => cellsOf(row, op, unaryOf),
      binary: (row, op) => cellsOf(row, op, binaryOf),
      compare: ({ js, gpujs }, op) => cellsOf({ js, int32: 'js', bool: 'js', gpujs }, op, binaryOf),
      grad: ({ gpujs }, op) => real(gradient(gpu, op, gradSource(gpujs))),
    }) as Pick<KernelCells, ElementwiseOp>),
    where: { ...float(where(gpu)), bool: where(gpu) },
    axpy: float(axpy(gpu)),
  }
}
