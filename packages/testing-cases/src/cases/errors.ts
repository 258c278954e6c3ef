/** Mistakes of users, each as a program that must reject with a typed error: its code, its values, and its remedy. */
import { add, matmul, mul, sum } from '@postgrad/autograd'
import { PostgradError } from '@postgrad/base'
import { type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { call, currentWorker, expose, remote } from '@postgrad/rpc'
import { ones } from '@postgrad/tensor'
import { using } from './case.js'

const parameter = () => ones([3, 3], { requiresGrad: true })

export async function callsUnknownWorker(): Promise<unknown> {
  return call('worker9', add, [1, 2])
}

export async function remoteOnUnknownWorker(): Promise<unknown> {
  return remote(7, add, [1, 2]).toHere()
}

/** Exists, and no `expose` names it. */
export function hidden(): number {
  return 1
}

export async function callsHidden(): Promise<unknown> {
  return call('worker1', hidden)
}

/** Exposed on the caller's thread only, not on the callee's. In one thread all workers share their names. */
export function onlyHere(): number {
  return 1
}

export async function callsOnlyHere(): Promise<unknown> {
  expose({ onlyHere })
  return call('worker1', onlyHere)
}

export async function wrongShapes(): Promise<unknown> {
  return call('worker1', matmul, [ones([3, 3]), ones([6, 6])])
}

/** Inside of a context, and with tensors that require grad. */
export async function wrongShapesInContext(): Promise<unknown> {
  return distAutograd.context(() => call('worker1', matmul, [parameter(), ones([6, 6], { requiresGrad: true })]))
}

export async function wrongShapesBehindReference(): Promise<unknown> {
  const ref = remote('worker1', add, [ones([3]), ones([4])])
  return using([ref], async () => await ref.toHere())
}

export function throwsRange(): never {
  throw new RangeError('nobody counts that far', { cause: new TypeError('not a number') })
}

export function throwsTyped(): never {
  throw new PostgradError('OUT_OF_COFFEE', {
    op: 'brew',
    message: 'the tin is empty',
    remedy: 'Fill it.',
    values: { cups: 3, sizes: [1, 2] },
  })
}

export async function userException(): Promise<unknown> {
  return call('worker1', throwsRange)
}

export async function userTypedException(): Promise<unknown> {
  return call('worker1', throwsTyped)
}

/** worker1 → worker2, which throws. */
export async function forwardsException(): Promise<unknown> {
  return call('worker2', throwsTyped)
}

export async function exceptionTwoHopsAway(): Promise<unknown> {
  return call('worker1', forwardsException)
}

export async function rootNotScalar(): Promise<unknown> {
  return distAutograd.context(async (ctx) => ctx.backward([await call('worker1', add, [parameter(), parameter()])]))
}

export async function rootWithoutGrad(): Promise<unknown> {
  return distAutograd.context(async (ctx) => ctx.backward([sum(await call('worker1', add, [ones([3]), ones([3])]))]))
}

export async function noRoots(): Promise<unknown> {
  return distAutograd.context((ctx) => ctx.backward([]))
}

/** A context that was left, and a loss that was made in it. */
async function leftBehind() {
  let left: DistAutogradContext | null = null
  const loss = await distAutograd.context(async (ctx) => {
    left = ctx
    return sum(mul(await call('worker1', add, [parameter(), parameter()]), 2))
  })
  return { ctx: left as unknown as DistAutogradContext, loss }
}

export async function backwardOfReleased(): Promise<unknown> {
  const { ctx, loss } = await leftBehind()
  return ctx.backward([loss])
}

export async function gradientsOfReleased(): Promise<unknown> {
  const { ctx } = await leftBehind()
  return distAutograd.getGradients(ctx.id)
}

export async function backwardByReleasedId(): Promise<unknown> {
  const { ctx, loss } = await leftBehind()
  return distAutograd.backward(ctx.id, [loss])
}

export async function contextNobodyMade(): Promise<unknown> {
  return distAutograd.getGradients(7n << 48n)
}

export async function callAfterShutdown(): Promise<unknown> {
  await currentWorker().close()
  return call('worker1', add, [1, 2])
}

export async function remoteAfterShutdown(): Promise<unknown> {
  await currentWorker().close()
  return remote('worker1', add, [1, 2]).toHere()
}

/** A call that waits when its worker is shut down. */
export async function shutDownWhileWaiting(): Promise<unknown> {
  const waiting = call('worker1', never)
  waiting.catch(() => {})
  await currentWorker().close()
  return waiting
}

export function never(): Promise<never> {
  return new Promise(() => {})
}

expose({
  callsUnknownWorker,
  remoteOnUnknownWorker,
  callsHidden,
  callsOnlyHere,
  wrongShapes,
  wrongShapesInContext,
  wrongShapesBehindReference,
})
expose({ throwsRange, throwsTyped, userException, userTypedException, forwardsException, exceptionTwoHopsAway })
expose({ rootNotScalar, rootWithoutGrad, noRoots, backwardOfReleased, gradientsOfReleased, backwardByReleasedId, contextNobodyMade })
expose({ callAfterShutdown, remoteAfterShutdown, shutDownWhileWaiting, never })

export interface ErrorCase {
  readonly name: string
  /** Exposed; runs as worker0 of four, and rejects. */
  readonly main: () => Promise<unknown>
  /** Required of the error; a PostgradError also has a remedy. */
  readonly expected: Readonly<Record<string, unknown>>
  /** A part of the message. */
  readonly message: string
  /** worker0 is shut down at the end. */
  readonly endsWorker?: true
}

const worker1 = { name: 'worker1', id: 1 }
const worker2 = { name: 'worker2', id: 2 }
const shapes = (a: number[], b: number[]) => ({ code: 'SHAPE_MISMATCH', values: { a, b } })

export const errorCases: readonly ErrorCase[] = [
  {
    name: 'unknown worker, by name',
    main: callsUnknownWorker,
    expected: { code: 'UNKNOWN_WORKER', values: { target: 'worker9' } },
    message: "'worker3'",
  },
  {
    name: 'unknown worker, by number',
    main: remoteOnUnknownWorker,
    expected: { code: 'UNKNOWN_WORKER', values: { target: 7 } },
    message: 'got 7',
  },
  {
    name: 'function that was not exposed',
    main: callsHidden,
    expected: { code: 'FUNCTION_NOT_EXPOSED', values: { function: 'hidden' } },
    message: 'expose({ hidden })',
  },
  { name: 'wrong shapes', main: wrongShapes, expected: { ...shapes([3, 3], [6, 6]), workers: [worker1] }, message: '[3, 3] and [6, 6]' },
  {
    name: 'wrong shapes in a context',
    main: wrongShapesInContext,
    expected: { ...shapes([3, 3], [6, 6]), workers: [worker1] },
    message: '[3, 3] and [6, 6]',
  },
  {
    name: 'wrong shapes behind a reference',
    main: wrongShapesBehindReference,
    expected: { ...shapes([3], [4]), workers: [worker1] },
    message: '[3] and [4]',
  },
  {
    name: 'exception of a built-in class in user code',
    main: userException,
    expected: { name: 'RangeError', workers: [worker1], remoteStack: 'throwsRange', cause: { name: 'TypeError', message: 'not a number' } },
    message: 'nobody counts that far',
  },
  {
    name: 'typed exception in user code',
    main: userTypedException,
    expected: { code: 'OUT_OF_COFFEE', op: 'brew', values: { cups: 3, sizes: [1, 2] }, workers: [worker1], remoteStack: 'throwsTyped' },
    message: 'the tin is empty',
  },
  {
    name: 'typed exception two hops away',
    main: exceptionTwoHopsAway,
    expected: { code: 'OUT_OF_COFFEE', values: { cups: 3, sizes: [1, 2] }, workers: [worker2, worker1], remoteStack: 'throwsTyped' },
    message: 'the tin is empty',
  },
  {
    name: 'root that is not scalar',
    main: rootNotScalar,
    expected: { code: 'ROOT_NOT_SCALAR', values: { root: 0, shape: [3, 3] } },
    message: 'got shape [3, 3]',
  },
  {
    name: 'root that requires no grad',
    main: rootWithoutGrad,
    expected: { code: 'ROOT_REQUIRES_NO_GRAD', values: { root: 0, shape: [] } },
    message: 'to require grad',
  },
  { name: 'no roots', main: noRoots, expected: { code: 'NO_ROOTS' }, message: 'at least one root' },
  {
    name: 'backward of a released context',
    main: backwardOfReleased,
    expected: { code: 'CONTEXT_RELEASED' },
    message: 'has been released',
  },
  {
    name: 'gradients of a released context',
    main: gradientsOfReleased,
    expected: { code: 'CONTEXT_RELEASED' },
    message: 'has been released',
  },
  {
    name: 'backward by the id of a released context',
    main: backwardByReleasedId,
    expected: { code: 'CONTEXT_RELEASED' },
    message: 'has been released',
  },
  {
    name: 'context that nobody made',
    main: contextNobodyMade,
    expected: { code: 'CONTEXT_NOT_FOUND', values: { contextId: String(7n << 48n) } },
    message: 'could not find autograd context',
  },
  {
    name: 'call after shutdown',
    main: callAfterShutdown,
    expected: { code: 'RPC_SHUT_DOWN', values: { worker: 'worker0' } },
    message: 'has been shut down',
    endsWorker: true,
  },
  {
    name: 'remote after shutdown',
    main: remoteAfterShutdown,
    expected: { code: 'RPC_SHUT_DOWN', values: { worker: 'worker0' } },
    message: 'has been shut down',
    endsWorker: true,
  },
  {
    name: 'call that waits while its worker is shut down',
    main: shutDownWhileWaiting,
    expected: { code: 'RPC_SHUT_DOWN', values: { worker: 'worker0' } },
    message: 'has been shut down',
    endsWorker: true,
  },
]

/** Cases that need a thread of its own for every worker. */
export const threadErrorCases: readonly ErrorCase[] = [
  {
    name: 'function that only the caller has exposed',
    main: callsOnlyHere,
    expected: { code: 'FUNCTION_NOT_EXPOSED', values: { function: 'onlyHere' }, workers: [worker1] },
    message: "worker 'worker1'",
  },
]
