/** One pass over three workers: its forward calls, its gradients, and the reports that end it. */
import assert from 'node:assert/strict'
import { call, currentContext, distAutograd, expose, rand, workerLocal } from '../../packages/postgrad/dist/index.js'
import { nodesFrom } from './graph.mjs'
import { plain, record } from './record.mjs'
import { sequence } from './sequence.mjs'

const weight = workerLocal(() => rand([3, 3], { requiresGrad: true }))
const second = (x) => x.matmul(weight()).tanh()
const first = async (x) => call('worker2', second, [x.mul(weight())])
/** By message: the nodes that its gradients start here, in the order of the graph. */
const nodesHere = () => [...currentContext().sendFunctions].map(([id, send]) => [idText(id), nodesFrom([send]).map(({ name }) => name)])
expose({ first, second, nodesHere })

const ROLES = { call: 'call', result: 'result', gradient: 'gradient', pass: 'pass' }
/** It only looks at the graph, and is not drawn. */
const LOOK = 'nodesHere'
const FORWARD = ['CALL', 'RESULT']

export async function pass() {
  const run = await record(3, () =>
    distAutograd.context(async (ctx) => {
      const x = rand([3, 3], { requiresGrad: true })
      const y = await call('worker1', first, [x])
      const loss = y.mul(weight()).sum()
      const nodes = new Map([...nodesHere(), ...(await call('worker1', nodesHere)), ...(await call('worker2', nodesHere))])
      const root = nodesFrom([loss.gradFn]).map(({ name }) => name)
      await ctx.backward([loss])
      return { nodes, root }
    }),
  )
  const { nodes, root } = run.result
  const rows = []
  /** By message: its number in the picture. A worker's messages leave in the order of their ids. */
  const numbers = new Map()
  for (const worker of run.workers) {
    const sent = run.frames.filter(({ from, type, label }) => from === worker && FORWARD.includes(type) && !label.includes(LOOK))
    const ids = [...nodes.keys()].filter((id) => `worker${id.split('.')[0]}` === worker)
    for (const [i, { position }] of sent.entries()) numbers.set(ids[i], position + 1)
  }
  for (const frame of run.frames) {
    const { kind, from, to, label, family, type, position } = frame
    if (kind !== 'frame' || label.includes(LOOK)) continue
    if (type === 'CLEANUP_CONTEXT') break
    if (type === 'PROPAGATE_GRADIENTS' && !rows.some((row) => row.sub === type)) {
      rows.push({ rule: 'ctx.backward([loss])' })
      rows.push(...marks('worker0', root))
    }
    const id = /message ([\d.]+)/.exec(label)?.[1]
    const row = { arrow: [from, to], label: plain(label), sub: type, role: ROLES[family], position }
    if (type === 'PASS_REPORT') row.label = countsOf(run.seen, from, position)
    if (id !== undefined) {
      assert(numbers.has(id))
      row.label = `gradients of message ${numbers.get(id)}`
    }
    rows.push(row)
    if (type === 'PROPAGATE_GRADIENTS') rows.push(...marks(to, nodes.get(id)))
  }
  rows.push({ mark: 'worker0', label: 'the pass has ended', role: 'ink' })
  rows.unshift({ rule: 'Forward: two calls' })
  return {
    name: 'pass',
    draw: sequence({
      title: 'A pass over three workers',
      desc: 'Forward: worker0 calls first on worker1, which calls second on worker2. Backward: worker0 sends the gradients of the result to worker1, worker1 to worker2, worker2 back to worker1, and worker1 back to worker0. worker1 and worker2 each send one report to worker0, which counts their gradient messages. Then the pass has ended.',
      workers: run.workers,
      rows,
      bars: [],
    }),
  }
}

/** The nodes that a worker runs next: without the ends of messages, which compute nothing, and without `Backward`. The AccumulateGrad of a leaf means that its gradient stays here. */
function marks(worker, names) {
  const computing = names
    .filter((name) => !name.endsWith('RpcBackward') && name !== 'AccumulateGrad')
    .map((name) => name.replace('Backward', ''))
  const labels = computing.length === 0 ? [] : [`runs ${computing.join(', ')}`]
  if (names.includes('AccumulateGrad')) labels.push('keeps a gradient')
  if (labels.length === 0) labels.push('computes nothing')
  return labels.map((label) => ({ mark: worker, label, role: 'ink' }))
}

/** A worker's report as it counts: the gradient messages that the worker had received and sent. */
function countsOf(seen, worker, position) {
  const before = seen.slice(
    0,
    seen.findIndex((event) => event.kind === 'sent' && event.at === worker && event.type === 'PASS_REPORT' && event.position <= position),
  )
  const count = (kind) =>
    before.filter((event) => event.at === worker && event.kind === kind && event.type === 'PROPAGATE_GRADIENTS').length
  return `received ${count('received')}, sent ${count('sent')}`
}

function idText(id) {
  return `${id >> 48n}.${id & 0xffff_ffff_ffffn}`
}
