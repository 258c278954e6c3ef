/** Kernels of the wasm backend for the blocks of chains (`kernels/chains/blocks.ts`): the exports themselves, with the addresses of dense elements. */
import type { BinaryDefinition, CompareDefinition, GradDefinition, UnaryDefinition } from '../elementwise/definition.js'
import { ROWS } from '../elementwise/rows.js'
import type { ChainStep, DirectKernel, DirectKernels, Lanes, LanesKernel } from '../table/chain.js'
import type { BinaryExport, GradientExport, LazyInstance, UnaryExport, WasmInstance } from './calls/instance.js'
import { workedElements } from './calls/pause.js'
import { formulaOf } from './lanes/formulas.js'
import { type LanesProgram, moduleOf, parametersOf, RUN } from './lanes/module.js'

/** Made once per instance. */
export function directKernels(lazy: LazyInstance): () => DirectKernels {
  let made: DirectKernels | null = null
  return () => {
    made ??= directOf(lazy.get())
    return made
  }
}

function directOf(instance: WasmInstance): DirectKernels {
  const known = new Map<string, DirectKernel | null>()
  const modules = new Map<string, Run>()
  return {
    buffer: instance.heap.buffer,
    get threads() {
      return instance.threads
    },
    of: (step) => {
      const key = `${step.op} ${step.dtype}`
      let kernel = known.get(key)
      if (kernel === undefined) {
        kernel = kernelOf(instance, step)
        known.set(key, kernel)
      }
      return kernel
    },
    isOfLanes: (step, from) => formulaOf(step, from) !== null,
    lanes: (lanes) => lanesKernel(instance, lanes, modules),
    fillRuns: (bytes, n, run, from, to) => {
      const { move_8, move_32, move_64 } = instance.kernels
      const move = bytes === 4 ? move_32 : bytes === 8 ? move_64 : move_8
      move(n, run, from, bytes, 0, to, run * bytes, bytes)
    },
    worked: workedElements,
  }
}

/** A direct kernel for ops whose export has the bits of the cell at every size. It reads `instance.kernels` at each call, since that changes with the number of threads. */
function kernelOf(instance: WasmInstance, { form, op, dtype }: ChainStep): DirectKernel | null {
  if (form === 'unary') {
    const row: UnaryDefinition = ROWS.unary[op as keyof typeof ROWS.unary]
    // Exponents have kernels of their own, and bounds of int32 are cut first.
    if (row.square !== undefined || dtype === 'int32' || dtype === 'bool') return null
    const name = (dtype === 'float32' ? row.wasm : row.wasm64) ?? row.simd?.[dtype]
    return name === undefined ? null : (n, a, _a, _b, _bs, _c, _cs, out, p0, p1) => instance.kernels[name as UnaryExport](n, a, out, p0, p1)
  }
  if (form === 'binary') {
    const row: BinaryDefinition = ROWS.binary[op as keyof typeof ROWS.binary]
    const name = (dtype === 'float32' ? row.wasm : undefined) ?? (dtype === 'bool' ? undefined : row.simd?.[dtype])
    return name === undefined ? null : binary(instance, name as BinaryExport, false)
  }
  if (form === 'compare') {
    const { simd, swapped }: CompareDefinition = ROWS.compare[op as keyof typeof ROWS.compare]
    const name = dtype === 'bool' ? undefined : simd[dtype]
    return name === undefined ? null : binary(instance, name as BinaryExport, swapped === true)
  }
  if (form === 'grad') {
    const { wasm }: GradDefinition = ROWS.grad[op as keyof typeof ROWS.grad]
    if (dtype !== 'float32') return null
    return (n, g, gStep, x, _xs, _c, _cs, out, p0, p1) => instance.kernels[wasm as GradientExport](n, g, gStep, x, out, p0, p1)
  }
  if (form !== 'choice' || dtype === 'bool') return null
  const name = dtype === 'float64' ? 'where_64' : 'where_32'
  return (n, cond, _step, a, aStep, b, bStep, out) => instance.kernels[name](1, n, cond, 0, a, 0, aStep, b, 0, bStep, out)
}

function binary(instance: WasmInstance, name: BinaryExport, isSwapped: boolean): DirectKernel {
  if (isSwapped) return (n, a, aStep, b, bStep, _c, _cs, out) => instance.kernels[name](1, n, b, 0, bStep, a, 0, aStep, out, 0)
  return (n, a, aStep, b, bStep, _c, _cs, out) => instance.kernels[name](1, n, a, 0, aStep, b, 0, bStep, out, 0)
}

/** The part used here: @types/node leaves it to the DOM library. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { readonly exports: object }
}

type Run = (...args: readonly number[]) => void

/** A thread keeps so many modules; the oldest is made again when it is wanted again. */
const MODULES_MAX = 128

function lanesKernel(instance: WasmInstance, { inputs, steps, outputs }: Lanes, modules: Map<string, Run>): LanesKernel {
  const dtypes = inputs.map(({ dtype }) => dtype)
  const formulas = steps.map((step) => {
    const from = step.operands.map((at) => dtypes[at]!)
    dtypes.push(step.made)
    return { text: formulaOf(step, from)!, operands: step.operands }
  })
  const program: LanesProgram = {
    inputs: inputs.map(({ dtype, isSingle }) => (isSingle ? 's' : dtype === 'bool' ? 'b' : 'f')),
    formulas,
    outputs: outputs.map((formula) => ({ formula, isBool: steps[formula]!.made === 'bool' })),
  }
  const key = JSON.stringify(program)
  let run = modules.get(key)
  if (run === undefined) {
    const module = new WebAssembly.Module(moduleOf(program))
    run = (new WebAssembly.Instance(module, { env: { memory: instance.heap.memory } }).exports as Record<string, Run>)[RUN]!
    if (modules.size === MODULES_MAX) modules.delete(modules.keys().next().value!)
    modules.set(key, run)
  }
  const parameters = steps.flatMap((step, i) => parametersOf(formulas[i]!.text).map((name) => step[name]))
  const kernel = run
  return (n, at) => kernel(n, ...at, ...parameters)
}
