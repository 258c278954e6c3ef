/**
 * The gpujs backend: the cells of this folder's files, and the reasons for missing ones. gpu.js computes in float32
 * only; the js backend's loops move data (copy, fill, conversion, elements at indices), for all types.
 */
import { fusedCells } from '../js/cells.js'
import { moves } from '../js/indexed.js'
import { cells as copies } from '../js/movement.js'
import type { Backend, KernelCells } from '../table/backend.js'
import { FUSED_OPS } from '../table/ops.js'
import type { BackendName } from '../table/table.js'
import { KernelCompiler } from './compiler.js'
import * as elementwise from './elementwise.js'
import * as neural from './neural-kernels.js'
import * as products from './products.js'
import * as rows from './rows.js'
import { gpuUserKernels } from './user-kernels.js'

/** Nothing is loaded yet: kernels are compiled at their first call, and their mode is checked then. No device runs them yet; tests do. */
export function createGpujsBackend(compiler = new KernelCompiler()): Backend {
  return {
    name: 'gpujs' as BackendName,
    label: 'gpujs',
    kernels: createTable(compiler),
    userKernels: gpuUserKernels(compiler),
    ready: () => Promise.resolve(),
    variantOf: (op) => (MOVEMENT.has(op) ? 'loop' : 'gpu.js cpu'),
  }
}

const movement = { ...copies, ...moves }
/** Done by loops for every dtype: nothing is computed. */
export const MOVEMENT: ReadonlySet<string> = new Set(Object.keys(movement))

function createTable(gpu: KernelCompiler): KernelCells {
  return {
    ...elementwise.cells(gpu),
    ...movement,
    ...rows.cells(gpu),
    ...products.cells(gpu),
    ...neural.cells(gpu),
    ...fusedCells(FUSED_OPS),
  }
}
