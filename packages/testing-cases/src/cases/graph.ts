/**
 * PyTorch's tests of the graph's shape (cases 5 to 12): each calls, and returns what every worker has recorded, as text for a test to quote.
 *
 *   { sends: ['AddBackward(recv0:0, recv0:1)'], recvs: ['2 from worker0'] }
 *   one send function, whose one tensor was made by an addition of outputs 0 and 1 of the first receive function, which has two outputs
 */
import { add } from '@postgrad/autograd'
import { AccumulateGrad, type Edge, gradientEdge, type Node } from '@postgrad/autograd/internal'
import { isPostgradError } from '@postgrad/base'
import { type DistAutogradContext, distAutograd } from '@postgrad/dist-autograd'
import { currentContext, currentDistAutograd, type RecvRpcBackward } from '@postgrad/dist-autograd/internal'
import { call, currentWorker, expose, remote } from '@postgrad/rpc'
import { ones, type Tensor, zeros } from '@postgrad/tensor'
import { myAdd } from './backward.js'
import { using } from './case.js'

/** One worker's records in a context. */
export interface GraphText {
  /** Per send function the tensors of its message. */
  readonly sends: readonly string[]
  readonly recvs: readonly string[]
  /** Where the tensors that were asked for come from. */
  readonly values: Readonly<Record<string, string>>
  /** The other workers that the context knows here, by name. */
  readonly knownWorkers: readonly string[]
}

/** All that a case shows. */
export interface GraphReport {
  readonly byWorker: Readonly<Record<string, GraphText>>
  /** Seen by the caller after it has left the context. */
  readonly after: { readonly state: string; readonly current: string }
}

/** How a case makes its result of t1 (ones) and t2 (zeros), both 3×3 leaves. */
export type GraphCall = 'operation' | 'function' | 'remote operation' | 'remote function' | 'nested calls' | 'nested remotes'

/** Runs as worker0: makes the result through `path`, one worker after another, and asks all workers what they have. */
export async function graphCase(how: GraphCall, path: readonly string[]): Promise<GraphReport> {
  const byWorker: Record<string, GraphText> = {}
  let id = 0n
  await distAutograd.context(async (ctx) => {
    id = ctx.id
    const t1 = ones([3, 3], { requiresGrad: true })
    const t2 = zeros([3, 3], { requiresGrad: true })
    const ret = await through(how, path, t1, t2)
    const self = currentWorker().info.name
    byWorker[self] = graphText(ctx, { t1, t2, ret })
    for (const worker of new Set(path)) if (worker !== self) byWorker[worker] = await call(worker, graphHere, [ctx.id])
  })
  return { byWorker, after: { state: contextState(id), current: String(currentContext()) } }
}

async function through(how: GraphCall, path: readonly string[], t1: Tensor, t2: Tensor): Promise<Tensor> {
  const to = path[0]!
  if (how === 'operation') return call(to, add, [t1, t2])
  if (how === 'function') return call(to, myAdd, [t1, t2])
  if (how === 'nested calls') return call(to, nestedCall, [t1, t2, path.slice(1)])
  const ref =
    how === 'remote operation'
      ? remote(to, add, [t1, t2])
      : how === 'remote function'
        ? remote(to, myAdd, [t1, t2])
        : remote(to, nestedRemote, [t1, t2, path.slice(1)])
  return using([ref], async () => await ref.toHere())
}

/** Forwards to the next worker of the path; the last one adds. */
export async function nestedCall(t1: Tensor, t2: Tensor, path: readonly string[]): Promise<Tensor> {
  const [next, ...rest] = path
  return next === undefined ? add(t1, t2) : await call(next, nestedCall, [t1, t2, rest])
}

export async function nestedRemote(t1: Tensor, t2: Tensor, path: readonly string[]): Promise<Tensor> {
  const [next, ...rest] = path
  if (next === undefined) return add(t1, t2)
  const ref = remote(next, nestedRemote, [t1, t2, rest])
  return using([ref], async () => await ref.toHere())
}

/** This worker's records in a context. */
export function graphHere(contextId: bigint): GraphText {
  return graphText(currentDistAutograd().container.retrieve(contextId), {})
}

/** 'live', or the code of what `retrieve` throws. */
export function contextState(contextId: bigint): string {
  try {
    currentDistAutograd().container.retrieve(contextId)
    return 'live'
  } catch (error) {
    if (isPostgradError(error)) return error.code
    throw error
  }
}

export function graphText(context: DistAutogradContext, named: Readonly<Record<string, Tensor>>): GraphText {
  const recvs = [...context.recvFunctions.values()]
  const leaves = new Map(Object.entries(named).map(([name, t]) => [t, name]))
  const nodeText = (node: Node): string => {
    if (node instanceof AccumulateGrad) return `leaf(${leaves.get(node.variable) ?? '?'})`
    return `${node.name}(${node.nextEdges.map(edgeText).join(', ')})`
  }
  const edgeText = (edge: Edge | null): string => {
    if (edge === null) return '-'
    const at = recvs.indexOf(edge.node as RecvRpcBackward)
    return at >= 0 ? `recv${at}:${edge.inputNr}` : nodeText(edge.node)
  }
  const nameOf = (worker: number): string => currentWorker().resolve(worker).name
  return {
    sends: [...context.sendFunctions.values()].map((send) => send.nextEdges.map(edgeText).join(', ')),
    recvs: recvs.map((recv) => `${recv.inputMeta.length} from ${nameOf(recv.from)}`),
    values: Object.fromEntries(Object.entries(named).map(([name, t]) => [name, edgeText(gradientEdge(t))])),
    knownWorkers: [...context.knownWorkerIds].map(nameOf),
  }
}

expose({ graphCase, nestedCall, nestedRemote, graphHere, contextState })

export interface GraphCase {
  readonly name: string
  readonly how: GraphCall
  readonly path: readonly string[]
  readonly expected: Readonly<Record<string, Partial<GraphText>>>
}

const CALLER: Partial<GraphText> = {
  sends: ['leaf(t1), leaf(t2)'],
  recvs: ['1 from worker1'],
  values: { t1: 'leaf(t1)', t2: 'leaf(t2)', ret: 'recv0:0' },
  knownWorkers: ['worker1'],
}
/** The last one: it adds. */
const callee = (from: string): Partial<GraphText> => ({ sends: ['AddBackward(recv0:0, recv0:1)'], recvs: [`2 from ${from}`] })
/** One in between: it forwards the inputs, and the result back. */
const between = (from: string, to: string): Partial<GraphText> => ({
  sends: ['recv0:0, recv0:1', 'recv1:0'],
  recvs: [`2 from ${from}`, `1 from ${to}`],
})
const PAIR = { worker0: CALLER, worker1: callee('worker0') }
const CHAIN = {
  worker0: CALLER,
  worker1: between('worker0', 'worker2'),
  worker2: between('worker1', 'worker3'),
  worker3: callee('worker2'),
}
/** Out to worker1 and back: worker0 adds in its own context. */
const THERE_AND_BACK = {
  worker0: {
    sends: ['leaf(t1), leaf(t2)', 'AddBackward(recv0:0, recv0:1)'],
    recvs: ['2 from worker1', '1 from worker1'],
    values: { t1: 'leaf(t1)', t2: 'leaf(t2)', ret: 'recv1:0' },
    knownWorkers: ['worker1'],
  },
  worker1: between('worker0', 'worker0'),
}

/** A linear list: what each worker must have recorded. */
export const graphCases: readonly GraphCase[] = [
  { name: 'case 5, graph_for_builtin_call', how: 'operation', path: ['worker1'], expected: PAIR },
  { name: 'case 6, graph_for_python_call', how: 'function', path: ['worker1'], expected: PAIR },
  { name: 'case 7, graph_for_builtin_remote_call', how: 'remote operation', path: ['worker1'], expected: PAIR },
  { name: 'case 8, graph_for_python_remote_call', how: 'remote function', path: ['worker1'], expected: PAIR },
  { name: 'case 9, graph_for_py_nested_call', how: 'nested calls', path: ['worker1', 'worker2', 'worker3'], expected: CHAIN },
  { name: 'case 10, graph_for_py_nested_remote_call', how: 'nested remotes', path: ['worker1', 'worker2', 'worker3'], expected: CHAIN },
  { name: 'case 11, graph_for_py_nested_call_itself', how: 'nested calls', path: ['worker1', 'worker0'], expected: THERE_AND_BACK },
  {
    name: 'case 12, graph_for_py_nested_remote_call_itself',
    how: 'nested remotes',
    path: ['worker1', 'worker0'],
    expected: THERE_AND_BACK,
  },
]
