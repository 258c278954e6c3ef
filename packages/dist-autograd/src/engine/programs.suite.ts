/** The functions that this package's tests call from worker to worker; most are PyTorch's own (`dist_autograd_test.py`). */
import { add, matmul, mul } from '@postgrad/autograd'
import { type AnyFunction, call, currentWorker, expose, type RRef, remote } from '@postgrad/rpc'
import { rand, type Tensor, tensor } from '@postgrad/tensor'

export function leaf(shape: number[], options: { dtype?: 'float32' | 'float64' } = {}): Tensor {
  return rand(shape, { requiresGrad: true, ...options })
}

/** Small whole numbers: their sums and products are exact, so that gradients agree in every order of summation. */
export function wholeLeaf(values: number[][]): Tensor {
  return tensor(values, { requiresGrad: true })
}

export const pyAdd = (a: Tensor, b: Tensor): Tensor => add(a, b)

/** Forwards to the next worker, `hops` times, the last of which adds one further on. */
export async function pyNested(a: Tensor, b: Tensor, dst: number, size: number, hops: number): Promise<Tensor> {
  const next = (dst + 1) % size
  return hops > 0 ? await call(next, pyNested, [a, b, next, size, hops - 1]) : await call(next, pyAdd, [a, b])
}

export async function pyNestedRemote(a: Tensor, b: Tensor, dst: number, size: number, hops: number): Promise<Tensor> {
  const next = (dst + 1) % size
  const result = hops > 0 ? remote(next, pyNestedRemote, [a, b, next, size, hops - 1]) : remote(next, pyAdd, [a, b])
  return await result.toHere()
}

/** t1 · t2 · (t1·t2) · (t1+t2) · res, with res = (t1·t2) + (t1+t2) made on another worker. */
export async function complexNested(t1: Tensor, t2: Tensor, dst: number): Promise<Tensor> {
  const t3 = mul(t1, t2)
  const t4 = add(t1, t2)
  const res = await call(dst, pyAdd, [t3, t4])
  return mul(mul(mul(mul(t1, t2), t3), t4), res)
}

export function mixedRequiresGrad(t1: Tensor, t2: Tensor): Tensor {
  return t2.requiresGrad ? t1.sub(t2) : t1.mul(t2)
}

export async function rrefAdd(rref: RRef<Tensor>, t: Tensor): Promise<Tensor> {
  return add(rref.localValue(), t)
}

export async function makeRemotely(ownerOfResult: number, rref: RRef<Tensor>, t: Tensor): Promise<Tensor> {
  return await call(ownerOfResult, rrefAdd, [rref, t])
}

export const nothing = (): number => 1

export const failing = (): never => {
  throw new RangeError('Simulated error in a call')
}

/** Two workers call each other, `depth` deep, adding one each time. */
export async function pingPong(x: Tensor, depth: number): Promise<Tensor> {
  if (depth === 0) return x
  const other = 1 - currentWorker().info.id
  return await call(other, pingPong, [add(x, 1), depth - 1])
}

expose({ pyAdd, pyNested, pyNestedRemote, complexNested, mixedRequiresGrad, rrefAdd, makeRemotely, nothing, failing, pingPong })

/** How a program runs its steps: here, or on another worker in one of two ways. */
export type Exec = <A extends unknown[]>(fn: (...args: A) => Tensor | Promise<Tensor>, args: A) => Promise<Tensor>

export const local: Exec = async (fn, args) => await fn(...args)

/** Every step on the next worker but this one, in turn. */
export function callOn(targets: readonly number[]): Exec {
  let turn = 0
  return async (fn, args) => (await call(targets[turn++ % targets.length]!, fn as AnyFunction, args)) as Tensor
}

export function remoteOn(targets: readonly number[]): Exec {
  let turn = 0
  return async (fn, args) => (await remote(targets[turn++ % targets.length]!, fn as AnyFunction, args).toHere()) as Tensor
}

export { matmul }
