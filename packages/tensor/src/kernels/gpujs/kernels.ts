/**
 * Shared parts of this folder's kernels: each brings its operands into dense float32 arrays, launches sources of `sources.ts` through the
 * compiler and copies the results out (gpu.js cannot write into a caller's buffer). Gathering strided operands, converting bool and int32
 * operands to float32 and copying results are data movement, which the host does.
 */
import { elementsOf, type Operand } from '../table/operands.js'
import { unsupported } from '../table/table.js'
import { stepOver, walk } from '../table/walk.js'
import type { Argument, Constants, KernelCompiler } from './compiler.js'

type F32 = Float32Array

/** A dense operand as float32, without a copy where that is possible. */
export function floats(x: Operand): F32 {
  const elements = elementsOf(x)
  return elements.constructor === Float32Array ? (elements as F32) : Float32Array.from(elements)
}

/** x as it counts for out: one element that is repeated (step 0), or all (step 1), gathered if need be. */
export function operand(x: Operand, out: Operand): readonly [elements: F32, step: number] {
  const step = stepOver(x, out)
  if (step >= 0) return [floats(x), step]
  const [host, gathered] = [x.storage.host!, new Float32Array(out.numel)]
  let to = 0
  walk(out.shape, [x], (n, [at = 0], [step = 0]) => {
    for (let i = 0; i < n; i++) gathered[to++] = host[at + i * step]!
  })
  return [gathered, 1]
}

/** One thread per element. @throws KERNEL_UNSUPPORTED, KERNEL_MODE */
export function launch(
  gpu: KernelCompiler,
  name: string,
  source: string,
  threads: number,
  constants: Constants,
  args: readonly Argument[],
): F32 {
  return gpu.run(name, source, [threads], constants, args) as F32
}

/** One thread per element of out, which gets the results. */
export function into(
  gpu: KernelCompiler,
  out: Operand,
  name: string,
  source: string,
  constants: Constants,
  args: readonly Argument[],
): void {
  if (out.numel === 0) return
  const [host, results] = [out.storage.host!, launch(gpu, name, source, out.numel, constants, args)]
  if (out.isContiguous) host.set(results, out.offset)
  else {
    let from = 0
    walk(out.shape, [out], (n, [at = 0], [step = 0]) => {
      for (let i = 0; i < n; i++) host[at + i * step] = results[from++]!
    })
  }
}

export const FLOAT64 = unsupported('gpu.js returns float32 alone, which would drop half of the digits')
export const INT32 = unsupported('gpu.js computes in float32, in which integers are exact only up to 2^24')
const BOOL = unsupported('the operation has no meaning on bool; raw operations convert first')
const REAL = unsupported('the operation is defined on real numbers; raw operations convert to float32 first')

/** The cells of an op: float32 is the one type that gpu.js computes in. Bool, whose 0 and 1 are exact there, may have a kernel as well. */
export const float = <K>(float32: K) => ({ float32, float64: FLOAT64, int32: INT32, bool: BOOL })
export const real = <K>(float32: K) => ({ float32, float64: FLOAT64, int32: REAL, bool: REAL })
