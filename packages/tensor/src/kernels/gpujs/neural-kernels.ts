/** Convolutions, pooling and normalisation on gpujs: one thread per element of the result, over `GpuKernels.launch`. Sources: `neural-sources.ts`. */
import type { ConvGeometry, ConvKernel, NEURAL_KERNEL_OPS } from '../neural.js'
import { type KernelTable, unsupported } from '../table.js'
import { dense, type GpuKernels } from './kernels.js'
import { CONV } from './neural-sources.js'

type F32 = Float32Array

export function convKernel(gpu: GpuKernels, op: keyof typeof CONV): ConvKernel<F32> {
  return {
    run(g, a, ao, b, bo, out, oo) {
      const [x, y] = [g.n * g.c * g.h * g.w, g.n * g.o * g.oh * g.ow]
      const weight = (g.o * g.c * g.kh * g.kw) / g.groups
      const [aSize, bSize, size] = op === 'conv2d' ? [x, weight, y] : op === 'conv2dInput' ? [y, weight, x] : [x, y, weight]
      if (aSize * bSize * size === 0) out.fill(0, oo, oo + size)
      else {
        const constants = { ...g, cg: g.c / g.groups, og: g.o / g.groups }
        const args = [dense(a, ao, aSize), dense(b, bo, bSize)]
        out.set(
          gpu.launch(op, `${op}|${keyOf(g)}`, () => CONV[op], size, constants, args),
          oo,
        )
      }
    },
  }
}

const keyOf = (g: ConvGeometry): string => Object.values(g).join('|')

const FLOAT64 = unsupported('gpu.js returns float32 alone, which would drop half of the digits')
const REAL = unsupported('the operation is defined on real numbers; raw operations convert to float32 first')
const real = <K>(float32: K) => ({ float32, float64: FLOAT64, int32: REAL, bool: REAL })

/** A part of the table of `backend.ts`. */
export function neuralKernels(gpu: GpuKernels): Pick<KernelTable, (typeof NEURAL_KERNEL_OPS)[number]> {
  return {
    conv2d: real(convKernel(gpu, 'conv2d')),
    conv2dInput: real(convKernel(gpu, 'conv2dInput')),
    conv2dWeight: real(convKernel(gpu, 'conv2dWeight')),
  }
}
