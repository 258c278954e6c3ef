/**
 * An algorithm is a generator that runs on every rank. Each `yield` is a step: it says what this rank sends to whom and from whom it awaits values, and
 * gives these by rank when all have come. A value may be for a later step of its receiver, so that links are not idle while ranks compute. Algorithms know no
 * messages, clocks or deaths; `group/collective.ts` drives them.
 */
import { NOTHING, type Values } from './protocol.js'

export interface Step {
  readonly send: readonly Sent[]
  readonly from: readonly number[]
}

/** `later`: the receiver takes it so many steps after this one; default in this one. Each rank gives another one such thing for each step at most. */
export type Sent = readonly [to: number, values: Values, later?: number]

/** The values of a step, by rank; none from those that were not awaited. */
export type Received = readonly (Values | undefined)[]

export type Algorithm<T> = Generator<Step, T, Received>

/** Where an algorithm runs. */
export interface Place {
  readonly rank: number
  readonly size: number
  readonly limits: ReduceLimits
  /** By rank, in which heap it is: a number that ranks of one heap share. Between those, tensors in messages have no bytes. */
  readonly heaps: readonly number[]
}

/** Which algorithm reduces tensors of which size. The same on all ranks, and without effect on any bit. */
export interface ReduceLimits {
  /** Bytes that each rank sends at most where all send to all. */
  readonly oneStepBytes: number
  /** Bytes of all ranks at most that one of them adds up. */
  readonly rootBytes: number
  /** Slices travel in pieces of so many bytes, of which the first is added up while the next are on their way. */
  readonly pieceBytes: number
}

/**
 * Measured on two cores (`npm run bench -- --only allReduce`). Within a process messages carry no bytes, and the others take the root's block over. With a root one rank computes, in one step all do; and
 * nothing is copied. From 64 KiB on that saves more than the second step costs, and CPU time at any number of cores. Between processes each message
 * wakes one of them, so a root is better up to some MiB, and small pieces cost more than they save while there are more ranks than cores.
 */
export const LIMITS: ReduceLimits = { oneStepBytes: 2 ** 16, rootBytes: 2 ** 23, pieceBytes: 2 ** 24 }
export const LIMITS_IN_ONE_HEAP: ReduceLimits = { ...LIMITS, rootBytes: 2 ** 24, pieceBytes: Number.POSITIVE_INFINITY }
/** In one step each of two ranks sends the other no more bytes than by slices, waits for one message instead of three, and copies nothing. */
export const LIMITS_OF_TWO_APART: ReduceLimits = { ...LIMITS, oneStepBytes: Number.POSITIVE_INFINITY }

export function limitsFor(heaps: readonly number[]): ReduceLimits {
  if (heaps.every((heap) => heap === heaps[0])) return LIMITS_IN_ONE_HEAP
  return heaps.length === 2 ? LIMITS_OF_TWO_APART : LIMITS
}

/** All other ranks, in order. */
export function others({ rank, size }: Place): number[] {
  const ranks: number[] = []
  for (let other = 0; other < size; other++) if (other !== rank) ranks.push(other)
  return ranks
}

/** To each other rank what `values` gives for it, and the same from each. */
export function exchange(place: Place, values: (to: number) => Values): Step {
  const from = others(place)
  return { send: from.map((to) => [to, values(to)]), from }
}

/** All others give to `root`. */
export function toRoot(place: Place, root: number, values: () => Values): Step {
  return place.rank === root ? { send: NONE, from: others(place) } : { send: [[root, values()]], from: NONE }
}

/** `root` gives to all others. */
export function fromRoot(place: Place, root: number, values: (to: number) => Values): Step {
  return place.rank === root ? { send: others(place).map((to) => [to, values(to)]), from: NONE } : { send: NONE, from: [root] }
}

/** Nobody waits for it: what a rank gives to a step in which it has nothing to give. */
export const EMPTY = (): Values => NOTHING

const NONE: readonly never[] = Object.freeze([])
