/**
 * The form of acceptance cases: programs whose functions are exposed and whose `main` runs as worker0, with plain numbers as arguments and result,
 * so that the simulation, the inlined program and real threads can run them unchanged, and tests compare results to the bit.
 */
import type { BackwardMode, DistAutogradContext } from '@postgrad/dist-autograd'
import { currentDistAutograd } from '@postgrad/dist-autograd/internal'
import { expose, type RRef } from '@postgrad/rpc'
import { type DType, type Tensor, tensor } from '@postgrad/tensor'

/** A tensor as plain values: the numbers of its dtype, in logical order. Two are equal by `toEqual` exactly when their bits are (but for NaNs). */
export interface Plain {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly data: readonly number[]
}

export type Plains = Readonly<Record<string, Plain>>

/** Runs exposed functions on workers: a simulated or inlined cluster, or one of threads. */
export interface CaseCluster {
  on(worker: string): CaseWorker
}

export interface CaseWorker {
  run<A extends unknown[], R>(fn: (...args: A) => R, ...args: A): Promise<Awaited<R>>
}

/** A case with numbers: its inputs and PyTorch's results are under its name in `golden/dist.json`. */
export interface NumberCase {
  readonly name: string
  /** Its subject, and its number in the list of PyTorch's tests where it has one. */
  readonly shows: string
  /** Exposed; runs as worker0. The other workers are worker1 to worker3. */
  readonly main: (inputs: Plains) => Promise<Plains>
}

/** Every case has as many workers as PyTorch's tests have. */
export const CASE_WORKERS = 4

/** Runs on a worker: the mode of the contexts that are made there from now on. */
export function useMode(mode: BackwardMode): void {
  currentDistAutograd().container.defaultMode = mode
}

expose({ useMode })

/** Every worker of a cluster of cases gets that default. */
export async function useModeOn(cluster: CaseCluster, mode: BackwardMode): Promise<void> {
  await Promise.all(Array.from({ length: CASE_WORKERS }, (_, i) => cluster.on(`worker${i}`).run(useMode, mode)))
}

export function runCase(cluster: CaseCluster, { main }: NumberCase, inputs: Plains): Promise<Plains> {
  return cluster.on('worker0').run(main, inputs)
}

const ARRAYS = { float32: Float32Array, float64: Float64Array, int32: Int32Array, bool: Uint8Array } as const

/** A tensor without gradient. */
export function constant({ dtype, shape, data }: Plain): Tensor {
  return tensor(ARRAYS[dtype].from(data), { dtype }).reshape([...shape])
}

/** A parameter. */
export function leaf(values: Plain): Tensor {
  return constant(values).requiresGrad_()
}

export async function plain(t: Tensor): Promise<Plain> {
  return { dtype: t.dtype, shape: [...t.shape], data: [...(await t.detach().data())] }
}

export async function plains(tensors: Readonly<Record<string, Tensor>>): Promise<Record<string, Plain>> {
  const out: Record<string, Plain> = {}
  for (const [name, t] of Object.entries(tensors)) out[name] = await plain(t)
  return out
}

/** Plain values as text that is equal exactly when they are: JSON alone would lose the sign of a zero, and take infinities and NaN for null. */
export function bitsText(value: unknown): string {
  return JSON.stringify(value, (_, part) => {
    if (Object.is(part, -0)) return '-0'
    return typeof part === 'number' && !Number.isFinite(part) ? String(part) : part
  })
}

/**
 * This worker's gradients in a context, by name; a leaf without one is left out. Throws when a leaf that has no name has a gradient (PyTorch's tests
 * compare the size of the map).
 */
export async function gradientsOf(ctx: DistAutogradContext, leaves: Readonly<Record<string, Tensor>>): Promise<Record<string, Plain>> {
  const all = ctx.gradients()
  const out: Record<string, Plain> = {}
  let found = 0
  for (const [name, t] of Object.entries(leaves)) {
    const grad = all.get(t)
    if (grad === undefined) continue
    out[name] = await plain(grad)
    found++
  }
  if (found !== all.size) {
    throw new Error(`${all.size - found} gradients of leaves that have no name`)
  }
  return out
}

/** Runs `use` and gives the references up, whatever happens: what is left at the end of a case is a leak. */
export async function using<T>(refs: readonly Pick<RRef, 'dispose'>[], use: () => Promise<T>): Promise<T> {
  try {
    return await use()
  } finally {
    for (const ref of refs) ref.dispose()
  }
}
