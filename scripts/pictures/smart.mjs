/** The graph of PyTorch's design note, with a call whose result no root depends on, and the dependencies that SMART and FAST count in it. */
import assert from 'node:assert/strict'
import { Engine, GraphTask } from '../../packages/autograd/dist/internal.js'
import { add, call, currentContext, distAutograd, expose, mul, rand } from '../../packages/postgrad/dist/index.js'
import { nodesFrom } from './graph.mjs'
import { record } from './record.mjs'
import { line, page, rect, text } from './svg.mjs'

/** Nodes by worker. In a simulation, workers share the thread, so a call can leave them here. */
const graphs = new Map()
const keepGraph = (roots = []) => {
  const { sendFunctions, recvFunctions } = currentContext()
  return { roots, sends: [...sendFunctions.values()], recvs: [...recvFunctions.values()] }
}
const keepThere = () => void graphs.set('worker1', keepGraph())
expose({ keepThere })

/** Which send functions a pass of that mode waits for, and how it ended. */
async function run(mode) {
  const run = await record(2, () =>
    distAutograd.context(
      async (ctx) => {
        const [a, b, c] = ['a', 'b', 'c'].map(() => rand([3, 3], { requiresGrad: true }))
        const d = await call('worker1', add, [a, b])
        const e = await call('worker1', mul, [b, c])
        const loss = d.sum()
        graphs.set('worker0', keepGraph([loss.gradFn]))
        await call('worker1', keepThere)
        const nodes = describe({ loss, a, b, c, d, e })
        const end = await ctx.backward([loss]).then(
          () => 'ends',
          ({ code }) => code,
        )
        return { nodes, end }
      },
      { mode },
    ),
  )
  const got = run.frames.filter(({ type }) => type === 'PROPAGATE_GRADIENTS').map(({ label }) => /message ([\d.]+)/.exec(label)[1])
  return { ...run.result, got }
}

/** All nodes of both workers: where they are, their names, their edges, and the dependencies that the engine counts. */
function describe({ loss, a, b, c, d, e }) {
  const lists = [...graphs].map(([worker, { roots, sends, recvs }]) => ({
    worker,
    roots,
    sends,
    all: nodesFrom([...roots, ...sends, ...recvs]),
  }))
  const all = lists.flatMap(({ worker, all }) => all.map((node) => ({ worker, node })))
  const leaves = new Map([a, b, c].map((leaf, i) => [leaf, 'abc'[i]]))
  const results = new Map([
    [d.gradFn, 'd'],
    [e.gradFn, 'e'],
    [loss.gradFn, 'loss'],
  ])
  // In SMART the send functions that the roots depend on: found as the note says, from the receive functions that roots reach.
  const reached = new Set(nodesFrom([loss.gradFn]))
  for (let before = -1; before !== reached.size; ) {
    before = reached.size
    for (const { node } of all) {
      if (node.name !== 'SendRpcBackward' || reached.has(node)) continue
      if (all.some((other) => isRecv(other.node) && reached.has(other.node) && other.node.autogradId === node.autogradId))
        for (const each of nodesFrom([node])) reached.add(each)
    }
  }
  const counts = (isFast) => {
    const counted = new Map()
    for (const { roots, sends } of lists) {
      const starts = sends.filter((send) => isFast || reached.has(send))
      const task = new GraphTask({ keepGraph: true, createGraph: false, ordered: true, heldBack: null, sink: null, queue: null })
      new Engine().computeDependencies(task, [...roots, ...starts])
      for (const [node, count] of task.dependencies) counted.set(node, count)
      // A send function has one dependency: the gradients that it waits for.
      for (const send of starts) counted.set(send, 1)
    }
    return counted
  }
  const [smart, fast] = [counts(false), counts(true)]
  return all.map(({ worker, node }) => ({
    key: `${worker} ${node.autogradId === undefined ? '' : `${idText(node.autogradId)} `}${node.name}${leaves.has(node.variable) ? ` ${leaves.get(node.variable)}` : ''}`,
    worker,
    name: node.name,
    id: node.autogradId === undefined ? null : idText(node.autogradId),
    of: leaves.get(node.variable) ?? results.get(node) ?? null,
    smart: smart.get(node) ?? 0,
    fast: fast.get(node) ?? 0,
    runs: reached.has(node),
    edges: node.nextEdges.map((edge) => all.findIndex((other) => other.node === edge?.node)).filter((at) => at >= 0),
  }))
}

const isRecv = (node) => node.name === 'RecvRpcBackward'
const idText = (id) => `${id >> 48n}.${id & 0xffff_ffff_ffffn}`

const WIDTH = 612
const NODE = { width: 138, height: 42 }
const LEAF = { width: 92, height: 58 }
const ROW = 78
/** Where nodes are: column and row. Used ones are left of unused ones on each worker. */
const PLACES = {
  'worker0 SumBackward': [80, 0],
  'worker0 1.0 RecvRpcBackward': [80, 1],
  'worker0 1.1 RecvRpcBackward': [224, 1],
  'worker1 1.0 SendRpcBackward': [388, 2],
  'worker1 1.1 SendRpcBackward': [536, 2],
  'worker1 AddBackward': [388, 3],
  'worker1 MulBackward': [536, 3],
  'worker1 0.1 RecvRpcBackward': [388, 4],
  'worker1 0.2 RecvRpcBackward': [536, 4],
  'worker0 0.1 SendRpcBackward': [80, 5],
  'worker0 0.2 SendRpcBackward': [224, 5],
  'worker0 AccumulateGrad a': [54, 6],
  'worker0 AccumulateGrad b': [152, 6],
  'worker0 AccumulateGrad c': [250, 6],
}

export async function smart() {
  const [smartRun, fastRun] = [await run('smart'), await run('fast')]
  const { nodes } = smartRun
  assert.deepEqual([smartRun.end, fastRun.end], ['ends', 'UNUSED_SEND'])
  const waited = nodes.filter(({ name, smart }) => name === 'SendRpcBackward' && smart === 1)
  assert.deepEqual(
    waited.map(({ id }) => id).sort(),
    [...smartRun.got].sort(),
    'the send functions that are counted are those that got gradients',
  )
  assert.deepEqual(nodes.map(({ key }) => key).sort(), Object.keys(PLACES).sort(), 'each node has a place')
  return {
    name: 'smart',
    draw: (palette) => {
      const top = 56
      const boxes = nodes.map((node) => {
        const [x, row] = PLACES[node.key]
        const { width, height } = node.name === 'AccumulateGrad' ? LEAF : NODE
        return { node, x, y: top + row * ROW, width, height }
      })
      const bottom = top + 6 * ROW + LEAF.height
      const parts = [frame(4, 302, 'worker0', bottom, palette), frame(314, 294, 'worker1', bottom, palette)]
      for (const { node, x, y, height } of boxes) {
        const colour = node.runs ? palette.gradient : palette.line
        const style = { stroke: colour, arrow: true, dash: node.runs ? '' : '4 3' }
        for (const [i, to] of node.edges.entries()) {
          // Two edges to one node are side by side.
          const twins = node.edges.filter((other) => other === to).length
          const aside = twins === 1 ? 0 : i === 0 ? -12 : 12
          parts.push(line(x + aside, y + height, boxes[to].x + aside, boxes[to].y - 1, style))
        }
        const pair = boxes.find((other) => isRecv(node) && other.node.name === 'SendRpcBackward' && other.node.id === node.id)
        if (pair !== undefined) parts.push(line(x, y + height, pair.x, pair.y - 1, { ...style, wide: 2.5 }))
      }
      for (const box of boxes) parts.push(...drawn(box, palette))
      parts.push(...legend(bottom + 30, palette))
      return page({
        width: WIDTH,
        height: bottom + 74,
        title: 'The gradients that nodes wait for in SMART and in FAST',
        desc: `The graph of d = add(a, b) and e = mul(b, c) on worker1, with the root d.sum() on worker0. ${nodes
          .filter(({ name, smart, fast }) => smart !== fast && name !== 'RecvRpcBackward')
          .map(({ name, of, id, smart, fast }) => `${name} ${of ?? id ?? ''} waits for ${smart} in SMART and ${fast} in FAST`)
          .join('. ')}.`,
        parts,
      })
    },
  }
}

function frame(x, width, name, bottom, palette) {
  return `${rect(x, 30, width, bottom - 22, { stroke: palette.line, radius: 8 })}${text(x + width / 2, 20, name, { size: 14, fill: palette.ink, weight: 600 })}`
}

function drawn({ node, x, y, width, height }, palette) {
  const { name, of, runs, smart, fast, edges } = node
  const isLeaf = name === 'AccumulateGrad'
  const label = isLeaf ? `leaf ${of}` : name
  const isRoot = name === 'SumBackward' && edges.length > 0
  const fastColour = fast === smart ? palette.ink : palette.error
  const box = rect(x - width / 2, y, width, height, {
    fill: runs ? palette.gradientFill : palette.box,
    stroke: runs ? palette.gradient : palette.line,
    dash: runs ? '' : '4 3',
  })
  const words = { size: 12, fill: palette.ink }
  const head = text(x, y + 17, label, { size: 12, fill: palette.ink, weight: 600 })
  const aside = isRecv(node) && of !== null ? [text(x - width / 2 + 4, y - 5, of, { fill: palette.ink, anchor: 'start', weight: 600 })] : []
  if (isRoot) return [box, head, text(x, y + 34, 'the root', words)]
  if (isLeaf)
    return [
      box,
      head,
      text(x, y + 34, `SMART ${smart}`, words),
      text(x, y + 51, `FAST ${fast}`, { ...words, fill: fastColour, weight: fast === smart ? 400 : 600 }),
    ]
  return [
    box,
    head,
    ...aside,
    text(x - 4, y + 34, `SMART ${smart}`, { ...words, anchor: 'end' }),
    text(x + 4, y + 34, `FAST ${fast}`, { ...words, anchor: 'start', fill: fastColour, weight: fast === smart ? 400 : 600 }),
  ]
}

function legend(y, palette) {
  const words = { size: 12.5, fill: palette.ink, anchor: 'start' }
  return [
    rect(6, y - 11, 22, 14, { fill: palette.gradientFill, stroke: palette.gradient }),
    text(36, y, 'the root depends on it: it runs in a SMART pass', words),
    rect(6, y + 11, 22, 14, { fill: palette.box, stroke: palette.line, dash: '4 3' }),
    text(36, y + 22, 'the root does not depend on it; numbers: how many gradients a node waits for', words),
  ]
}
