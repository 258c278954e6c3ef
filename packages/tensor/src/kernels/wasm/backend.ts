/**
 * The wasm backend: a table of its own cells, laid over the table of the js backend, whose loops run where SIMD is not faster (bool, float64
 * functions of the engine's `Math`, most of int32). Each own cell says when each of its codes runs.
 */
import type { DType } from '../../values/dtype.js'
import { hostUserKernels } from '../gpujs/user-kernels.js'
import { jsKernels } from '../js/backend.js'
import type { Backend, KernelCells } from '../table/backend.js'
import { KERNEL_OPS, type KernelOp } from '../table/table.js'
import type { External } from './calls/external.js'
import { LazyInstance } from './calls/instance.js'
import type { KernelHeap } from './calls/memory.js'
import type { OwnCell, OwnCells } from './calls/own.js'
import * as convert from './convert.js'
import { directKernels } from './direct.js'
import * as elements from './element-cells.js'
import * as elementwise from './elementwise.js'
import * as indexed from './indices/indexed.js'
import * as sorting from './indices/sort.js'
import * as optim from './optim.js'
import * as pool from './pool.js'
import * as attention from './products/attention.js'
import * as conv from './products/conv.js'
import * as products from './products/products.js'
import * as random from './random.js'
import * as recurrent from './recurrent.js'
import * as apart from './rows/apart.js'
import * as extremes from './rows/extremes.js'
import * as norm from './rows/norm.js'
import * as probabilities from './rows/probabilities.js'
import * as rows from './rows/rows.js'
import * as running from './rows/running.js'
import * as statistics from './rows/statistics.js'

const FILES = [
  elements,
  elementwise,
  convert,
  indexed,
  random,
  rows,
  apart,
  running,
  extremes,
  sorting,
  probabilities,
  statistics,
  products,
  conv,
  pool,
  norm,
  optim,
  recurrent,
  attention,
]

/** `heap` gives the memory to compute in; asked for at the first kernel that needs it. `external` computes products of matrices, where it can. */
export function createWasmBackend(heap: () => KernelHeap, external: External | null = null): Backend {
  const instance = new LazyInstance(heap, external)
  const name = external?.name ?? 'wasm'
  const own: AnyCells = Object.assign({}, ...FILES.map(({ cells }): OwnCells => cells(instance)))
  return {
    name,
    label: name,
    kernels: overJs(own),
    userKernels: hostUserKernels(),
    direct: directKernels(instance),
    ready: () => Promise.resolve(),
    // For dense operands; strided ones may run as loops, with the same bits.
    variantOf: (op, dtype, shape) => own[op]?.[dtype]?.variant(shape.reduce((n, extent) => n * extent, 1)) ?? 'loop',
  }
}

/** The cells without the types of their kernels, whose union would be too large for the compiler. */
type AnyCells = Readonly<Partial<Record<KernelOp, Partial<Record<DType, OwnCell<object>>>>>>

function overJs(own: AnyCells): KernelCells {
  const cells = (op: KernelOp) => Object.entries(own[op] ?? {}).map(([dtype, cell]) => [dtype, cell.kernel])
  return Object.fromEntries(KERNEL_OPS.map((op) => [op, { ...jsKernels[op], ...Object.fromEntries(cells(op)) }])) as unknown as KernelCells
}
