/** Two runs of calls: one in which a call calls on, and one in which a deadline passes and a worker dies. */
import assert from 'node:assert/strict'
import { call, currentSignal, expose } from '../../packages/postgrad/dist/index.js'
import { plain, record, rowOf } from './record.mjs'
import { sequence } from './sequence.mjs'

const embed = (token) => token / 2
const predict = async (token) => 1 + (await call('worker2', embed, [token]))
/** Ends only when its call is given up. */
const endless = () => {
  const signal = currentSignal()
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}
const wait = () => call('worker2', endless)
let crash = () => {}
/** Its worker crashes while it runs. */
const crashing = () => {
  crash()
  return endless()
}
const ask = () => call('worker2', crashing)
expose({ predict, embed, endless, wait, crashing, ask })

const ROLES = { call: 'call', result: 'result', error: 'error' }

export async function calls() {
  const run = await record(3, () => call('worker1', predict, [6]))
  const rows = run.frames.filter(({ kind }) => kind === 'frame').map(arrowOf)
  return {
    name: 'call',
    draw: sequence({
      title: 'One call, and a call inside it',
      desc: 'worker0 calls predict on worker1. predict calls embed on worker2. The result of embed goes back to worker1, and the result of predict to worker0. Bars show where the functions run.',
      workers: run.workers,
      rows,
      bars: run.calls.map(({ at, from, to }) => ({ at, from: rowOf(rows, from), to: rowOf(rows, to + 1), role: 'call' })),
    }),
  }
}

export async function callEnds() {
  const late = await record(3, () => call('worker1', wait, [], { timeoutMs: 50 }).then(String, ({ code }) => code))
  const dead = await record(3, (sim) => {
    crash = () => sim.crash('worker2')
    return call('worker1', ask).then(String, ({ code }) => code)
  })
  // The picture says what the program has got.
  assert.deepEqual([late.result, dead.result], ['RPC_TIMEOUT', 'WORKER_DIED'])
  const [first, second] = [late, dead].map(({ frames }) => frames.map(rowOfFrame).filter((row) => row !== null))
  const rows = [
    { rule: 'The deadline passes: worker0 gives its call 50 ms' },
    ...first,
    { mark: 'worker0', label: `gets ${late.result}`, role: 'error' },
    { rule: 'The callee dies: worker2 crashes' },
    ...second,
    { mark: 'worker0', label: `gets ${dead.result}`, role: 'error' },
  ]
  const bars = [...late.calls.map((each) => barOf(each, first, 1)), ...dead.calls.map((each) => barOf(each, second, 1 + first.length + 2))]
  return {
    name: 'call-ends',
    draw: sequence({
      title: 'Two calls that fail',
      desc: 'Above: after 50 ms the deadline passes on worker0 and worker1. Each sends CALL_CANCEL, and worker0 gets RPC_TIMEOUT. Below: worker2 crashes while it serves a call. worker1 sends the error to worker0, which gets WORKER_DIED.',
      workers: late.workers,
      rows,
      bars,
    }),
  }
}

function barOf({ at, from, to }, rows, offset) {
  const end = rows.findIndex((row) => row.mark === at && row.ends === true)
  return { at, from: offset + rowOf(rows, from), to: offset + (end === -1 ? rowOf(rows, to) : end), role: 'call' }
}

function rowOfFrame(frame) {
  const { kind, from, to, timeMs, position } = frame
  if (kind === 'frame') return arrowOf(frame)
  if (kind === 'timer') return { mark: from, label: `${timeMs} ms: deadline`, role: 'soft', position }
  if (kind === 'crash') return { mark: from, label: '✕ crashes', role: 'error', ends: true, position }
  if (kind === 'close' && to === 'worker1') return { mark: to, label: `${from} has died`, role: 'soft', position }
  return null
}

function arrowOf({ from, to, label, family, type, position }) {
  return { arrow: [from, to], label: plain(label), sub: type, role: ROLES[family] ?? 'soft', position }
}
