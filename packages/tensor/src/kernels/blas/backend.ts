/**
 * The blas backend: the wasm backend, whose larger products go to the system's BLAS. Its bits are those of the library, which fuses, reorders and chooses by
 * processor (KERNELS.md).
 */

import type { Backend } from '../table/backend.js'
import { createWasmBackend } from '../wasm/backend.js'
import { CALL_FROM, type ExternalProduct, type Matrix } from '../wasm/calls/external.js'
import type { KernelHeap } from '../wasm/calls/memory.js'
import { worked } from '../wasm/calls/pause.js'
import { type Blas, openBlas } from './open.js'

const [ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE] = [101, 111, 112]
/** One call has so many rows at least, also where it then takes longer. */
const ROWS_MIN = 64
/** How many times as fast as the tiles of kernels.wasm it is, at least, for the pauses of what follows. */
const FASTER = 4
/** Multiplications of one call, after which the thread may pause: 8 ms with kernels for 512 bits, 65 ms with those for 128. The library packs b anew in each call. */
const CALL_WORK = 2 ** 30

/** @throws BLAS_NOT_FOUND */
export function createBlasBackend(heap: () => KernelHeap, blas: Blas = openBlas()): Backend {
  return createWasmBackend(heap, { name: 'blas', setThreads: blas.setThreads, productIn: (memory) => productBy(blas, memory) })
}

/** Products of matrices in `memory`, by their addresses there. False: of a form that the library does not know, or too small. */
function productBy(blas: Blas, { buffer }: KernelHeap): ExternalProduct {
  const base = blas.addressOf(new Uint8Array(buffer))
  return (bytes, m, n, k, a, b, out, outRow, adds) => {
    if (adds === undefined && m * n * k < CALL_FROM) return false
    const left = formOf(a, m, k, bytes)
    const right = formOf(b, k, n, bytes)
    if (left === null || right === null) return false
    const gemm = bytes === 4 ? blas.sgemm : blas.dgemm
    const atOnce = Math.max(ROWS_MIN, Math.floor(CALL_WORK / (n * k)))
    for (let i = 0; i < m; i += atOnce) {
      const rows = Math.min(atOnce, m - i)
      const at = base + a.pointer + i * a.row
      gemm(
        ROW_MAJOR,
        left.transposed,
        right.transposed,
        rows,
        n,
        k,
        1,
        at,
        left.leading,
        base + b.pointer,
        right.leading,
        adds === true ? 1 : 0,
        base + out + i * outRow,
        outRow / bytes,
      )
      worked((rows * n * k) / FASTER)
    }
    return true
  }
}

/** How the library is to read a matrix [rows, cols]; null if neither its rows nor its columns are dense, or they overlap. */
function formOf(
  { row, col }: Matrix,
  rows: number,
  cols: number,
  bytes: number,
): { readonly transposed: number; readonly leading: number } | null {
  if ((col === bytes || cols === 1) && (row >= cols * bytes || rows === 1))
    return { transposed: NO_TRANSPOSE, leading: Math.max(row / bytes, cols) }
  if ((row === bytes || rows === 1) && (col >= rows * bytes || cols === 1))
    return { transposed: TRANSPOSE, leading: Math.max(col / bytes, rows) }
  return null
}
