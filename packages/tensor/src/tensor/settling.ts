/**
 * The kernels of a thread that records chains: they compute their pending operands before they begin. Chains and kernels use the same scratch (`heap.scratch`). A chain
 * that ran in the middle of a kernel would overwrite the operands that the kernel has staged.
 */
import assert from 'node:assert'
import type { Storage } from '../heap/storage.js'
import type { Binary, Unary } from '../kernels/table/operands.js'
import { OPS } from '../kernels/table/ops.js'
import type { KernelOp } from '../kernels/table/table.js'

/** Whether this thread has compiled a function: before that no operand is pending. */
export let records = false
export function startRecording(): void {
  records = true
}

/** Whether a kernel of such a table is running. */
let isRunning = false

/** Asserted where a chain begins. */
export function assertNotInKernel(): void {
  assert(!isRunning, 'a kernel asks for elements that are pending')
}

const UNARY: ReadonlySet<KernelOp> = new Set(OPS.unary)
const BINARY: ReadonlySet<KernelOp> = new Set([...OPS.binary, ...OPS.compare])

type Any = (...args: readonly unknown[]) => void

/** `kernel`, which computes pending operands before it begins. */
export function settling(op: KernelOp, kernel: object): object {
  if (BINARY.has(op)) return binary(kernel as Binary)
  return UNARY.has(op) ? unary(kernel as Unary) : general(kernel as Any)
}

/** Small tensors go through these two: no list of operands is made. */
function unary(kernel: Unary): Unary {
  return (x, out, p0, p1) => {
    x.storage.pending?.settle()
    out.storage.pending?.settle()
    const outer = isRunning
    isRunning = true
    try {
      kernel(x, out, p0, p1)
    } finally {
      isRunning = outer
    }
  }
}

function binary(kernel: Binary): Binary {
  return (a, b, out) => {
    a.storage.pending?.settle()
    b.storage.pending?.settle()
    out.storage.pending?.settle()
    const outer = isRunning
    isRunning = true
    try {
      kernel(a, b, out)
    } finally {
      isRunning = outer
    }
  }
}

function general(kernel: Any): Any {
  return (...args) => {
    settleOperands(args)
    const outer = isRunning
    isRunning = true
    try {
      kernel(...args)
    } finally {
      isRunning = outer
    }
  }
}

/** Computes those arguments of a kernel that are pending operands. */
export function settleOperands(args: readonly unknown[]): void {
  for (const arg of args) {
    if (typeof arg === 'object') (arg as { readonly storage?: Storage } | null)?.storage?.pending?.settle()
  }
}
