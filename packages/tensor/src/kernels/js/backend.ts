/**
 * The js backend: the cells of this folder's files. The table has all cells that PyTorch has, for machines without SIMD and for cells
 * that SIMD does not speed up: the wasm backend lays its own cells over this table.
 */
import type { Backend, KernelCells } from '../table/backend.js'
import type { UserKernels } from '../table/operands.js'
import { FUSED_OPS } from '../table/ops.js'
import { fusedCells } from './cells.js'
import * as conv from './conv.js'
import * as elements from './element-cells.js'
import * as elementwise from './elementwise.js'
import * as indexed from './indexed.js'
import * as movement from './movement.js'
import * as norm from './norm.js'
import * as pool from './pool.js'
import * as probabilities from './probabilities.js'
import * as products from './products.js'
import * as reductions from './reduce.js'
import * as sort from './sort.js'

/** `userKernels` runs the kernels that users write. */
export function createJsBackend(userKernels: UserKernels): Backend {
  return {
    name: 'js',
    label: 'js',
    kernels: jsKernels,
    userKernels,
    ready: () => Promise.resolve(),
    variantOf: () => 'loop',
  }
}

export const jsKernels: KernelCells = {
  ...elements.cells,
  ...elementwise.cells,
  ...movement.cells,
  ...reductions.cells,
  ...sort.cells,
  ...probabilities.cells,
  ...products.cells,
  ...indexed.cells,
  ...conv.cells,
  ...pool.cells,
  ...norm.cells,
  ...fusedCells(FUSED_OPS),
}
