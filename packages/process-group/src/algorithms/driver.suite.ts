/** Runs an algorithm on all ranks without workers: delivers their messages in a drawn order, and counts them. */
import assert from 'node:assert'
import { isTensor, raw } from '@postgrad/tensor/internal'
import type { Values } from '../common/protocol.js'
import type { Algorithm, Place, Received } from '../common/step.js'
import { bytesOf as tensorBytes } from './parts.js'

/** Sent by one rank. */
export interface Sent {
  messages: number
  /** Of tensors to ranks of other heaps, which alone travel. */
  bytes: number
}

interface Under {
  readonly to: number
  readonly from: number
  readonly step: number
  readonly values: Values
}

class Rank {
  step = -1
  from: readonly number[] = []
  isDone = false
  readonly parts = new Map<number, (Values | undefined)[]>()
  readonly algorithm: Algorithm<unknown>

  constructor(algorithm: Algorithm<unknown>) {
    this.algorithm = algorithm
  }
}

/**
 * @param make the algorithm of each rank
 * @param below draws a number below n
 */
export function drive(places: readonly Place[], make: (place: Place) => Algorithm<unknown>, below: (n: number) => number): readonly Sent[] {
  const sent = places.map((): Sent => ({ messages: 0, bytes: 0 }))
  const ranks = places.map((place) => new Rank(make(place)))
  const underWay: Under[] = []
  const advance = (at: number, received: Received): void => {
    const rank = ranks[at]!
    const { value, done } = rank.algorithm.next(received)
    if (done === true) {
      rank.isDone = true
      return
    }
    rank.step++
    rank.from = value.from
    for (const [to, values, later = 0] of value.send) {
      sent[at]!.messages++
      if (places[at]!.heaps[to] !== places[at]!.heaps[at]) sent[at]!.bytes += bytesOf(values)
      underWay.push({ to, from: at, step: rank.step + later, values: copied(values) })
    }
    goOn(at)
  }
  const goOn = (at: number): void => {
    const { step, from, parts } = ranks[at]!
    const come = parts.get(step)
    if (from.every((other) => come?.[other] !== undefined)) advance(at, come ?? [])
  }
  for (const at of places.keys()) advance(at, [])
  while (underWay.length > 0) {
    // One of the first of a pair: messages of one rank to another keep their order.
    const firsts = underWay.filter((one, i) => underWay.findIndex(({ to, from }) => to === one.to && from === one.from) === i)
    const one = firsts[below(firsts.length)]!
    underWay.splice(underWay.indexOf(one), 1)
    const rank = ranks[one.to]!
    assert(!rank.isDone && one.step >= rank.step, 'nobody waits for it')
    const parts = rank.parts.get(one.step) ?? new Array<Values | undefined>(places.length).fill(undefined)
    assert(parts[one.from] === undefined, 'it was sent twice')
    parts[one.from] = one.values
    rank.parts.set(one.step, parts)
    if (one.step === rank.step) goOn(one.to)
  }
  assert(
    ranks.every(({ isDone }) => isDone),
    'a rank waits for ever',
  )
  return sent
}

const bytesOf = (values: Values): number => values.reduce<number>((sum, value) => sum + (isTensor(value) ? tensorBytes([value]) : 0), 0)
/** As messages do it. */
const copied = (values: Values): Values => values.map((value) => (isTensor(value) ? raw.clone(value) : value))
