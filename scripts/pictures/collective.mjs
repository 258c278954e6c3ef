/** An allReduce of large tensors: the steps that the algorithm itself takes, run on four ranks, each in a process of its own. */
import assert from 'node:assert/strict'
import { full } from '../../packages/postgrad/dist/index.js'
import { allReduce } from '../../packages/process-group/dist/algorithms/all-reduce.js'
import { sliceOf } from '../../packages/process-group/dist/algorithms/slices.js'
import { limitsFor } from '../../packages/process-group/dist/common/step.js'
import { line, page, rect, text } from './svg.mjs'

const RANKS = 4
const MIB = 2 ** 20
const ELEMENT = 4

/**
 * Runs `allReduce` on ranks of these heaps, step by step, and gives the messages with tensors, and the tensors of all ranks after each step that had some. Rank r begins with
 * 2^r everywhere, so a sum says whose values are in it.
 */
export function stepsOf(bytes, heaps) {
  const limits = limitsFor(heaps)
  const size = heaps.length
  const tensors = heaps.map((_, rank) => full([bytes / ELEMENT], 2 ** rank))
  const ranks = heaps.map((_, rank) => ({
    rank,
    step: -1,
    from: [],
    isDone: false,
    came: new Map(),
    algorithm: allReduce({ rank, size, limits, heaps }, 'allReduce', 'sum', [tensors[rank]]),
  }))
  const messages = []
  let underWay = []
  const advance = (rank, received) => {
    const { value, done } = rank.algorithm.next(received)
    rank.isDone = done === true
    if (rank.isDone) return
    rank.step++
    rank.from = value.from
    for (const [to, values, later = 0] of value.send) {
      const sent = values.map((tensor) => tensor.clone())
      const count = sent.reduce((sum, { numel }) => sum + numel * ELEMENT, 0)
      const message = { from: rank.rank, to, step: rank.step + later, bytes: count }
      if (count > 0) messages.push(message)
      underWay.push({ ...message, values: sent })
    }
    proceed(rank)
  }
  const proceed = (rank) => {
    const came = rank.came.get(rank.step) ?? []
    if (rank.from.every((from) => came[from] !== undefined)) advance(rank, came)
  }
  for (const rank of ranks) advance(rank, [])
  const states = [stateOf(tensors)]
  while (underWay.length > 0) {
    const now = underWay
    underWay = []
    for (const { from, to, step, values } of now) {
      const rank = ranks[to]
      const came = rank.came.get(step) ?? []
      came[from] = values
      rank.came.set(step, came)
      if (rank.step === step) proceed(rank)
    }
    if (now.some(({ bytes }) => bytes > 0)) states.push(stateOf(tensors))
  }
  assert(ranks.every(({ isDone }) => isDone))
  return { messages, states }
}

/** By rank and slice: whose values it has, as a number with a bit for each rank. */
function stateOf(tensors) {
  return tensors.map((x) =>
    tensors.map((_, slice) => {
      const [start] = sliceOf(x.numel, slice, tensors.length)
      return x.narrow(0, start, 1).toArray()[0]
    }),
  )
}

const WIDTH = 560
const LEFT = 12
const CELL = 29
const COLUMN = (WIDTH - LEFT) / RANKS
const HEIGHT = 30
const GAP = 132

export async function collective() {
  const bytes = 4 * MIB
  const { messages, states } = stepsOf(bytes, [0, 1, 2, 3])
  const all = 2 ** RANKS - 1
  const steps = [...new Set(messages.map(({ step }) => step))]
  assert.deepEqual([states.length, steps.length], [3, 2])
  assert(states[2].flat().every((value) => value === all))
  const x = (rank, slice) => LEFT + COLUMN * rank + CELL * slice
  const y = (state) => 56 + state * (HEIGHT + GAP)
  const sentBy = (rank, step) => messages.filter((one) => one.from === rank && one.step === step)
  const sizes = steps.map((step) => {
    const [one] = sentBy(0, step)
    assert(messages.every((each) => each.step !== step || each.bytes === one.bytes))
    return `each rank sends ${sentBy(0, step).length} slices of ${one.bytes / MIB} MiB`
  })
  const heads = [`at first: ${bytes / MIB} MiB on each rank, in ${RANKS} slices`, `step 1: ${sizes[0]}`, `step 2: ${sizes[1]}`]
  const ends = ['a slice has the values of its rank', 'rank r adds up slice r', 'so all have all sums']
  return {
    name: 'collective',
    draw: (palette) => {
      const parts = []
      for (let rank = 0; rank < RANKS; rank++)
        parts.push(text(x(rank, 2), 48, `rank ${rank}`, { fill: palette.ink, size: 14, weight: 600 }))
      parts.push(text(LEFT, 20, heads[0], { fill: palette.ink, anchor: 'start', weight: 600, size: 14 }))
      for (const [at, step] of steps.entries()) {
        for (const { from, to } of messages.filter((one) => one.step === step)) {
          // In the first step the slice of the receiver travels, in the second that of the sender.
          const slice = at === 0 ? to : from
          parts.push(
            line(x(from, slice) + CELL / 2, y(at) + HEIGHT + 26, x(to, slice) + CELL / 2, y(at + 1) - 3, {
              stroke: at === 0 ? palette.call : palette.result,
              arrow: true,
              wide: 1.1,
              opacity: 0.75,
            }),
          )
        }
      }
      for (const [at, state] of states.entries()) {
        for (const [rank, slices] of state.entries()) {
          for (const [slice, value] of slices.entries()) {
            const isSum = value === all
            parts.push(
              rect(x(rank, slice), y(at), CELL - 2, HEIGHT, {
                fill: isSum ? palette.resultFill : palette.callFill,
                stroke: isSum ? palette.result : palette.call,
                radius: 2,
              }),
            )
            parts.push(
              text(x(rank, slice) + CELL / 2 - 1, y(at) + 20, isSum ? 'Σ' : String(Math.log2(value)), {
                size: 14,
                fill: palette.ink,
                weight: isSum ? 600 : 400,
              }),
            )
          }
        }
        if (at < steps.length)
          parts.push(
            text(LEFT, y(at) + HEIGHT + 19, `${heads[at + 1]}; ${ends[at + 1]}`, { fill: palette.ink, anchor: 'start', weight: 600 }),
          )
      }
      return page({
        width: WIDTH,
        height: y(2) + HEIGHT + 6,
        title: 'allReduce of four ranks by slices',
        desc: `${heads.map((head, i) => `${head}; ${ends[i]}`).join('. ')}.`,
        parts,
      })
    },
  }
}
