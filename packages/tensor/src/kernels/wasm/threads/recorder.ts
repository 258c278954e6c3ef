/**
 * Records what a unit of a job calls, so that helper threads can compute units without the library's code. A unit is a function of its number and of the
 * address of its scratch that calls exports of kernels.wasm, and does nothing else. Its arguments move evenly with both: so units 0 and 1, and unit 0 with
 * another scratch, say all of it. The loops of kernels stay the one description of what is computed.
 */
import assert from 'node:assert'
import { TAPE_MAX } from './board.js'

/** One unit. @param scratch its own, which no other unit uses at the same time */
export type Unit = (unit: number, scratch: number) => void

/** Calls one after the other: the export's number, the number of arguments, and these. */
type Tape = readonly number[]

export interface Program {
  /** Of unit 0. */
  readonly tape: Tape
  /** The difference to the next unit, and for each byte by which the scratch moves. */
  readonly steps: Tape
  readonly own: Tape
  /** The last unit may be smaller than the others; then helpers compute one unit less. */
  readonly units: number
}

/** By how much the scratch moves between two recordings, in bytes. */
const MOVED = 64

type Export = (...args: readonly number[]) => void

export class Recorder {
  #tape: number[] | null = null

  /** The same functions, in the same order: they compute, or while a unit is recorded are written down. */
  over<T extends object>(exports: T): T {
    const wrap = ([name, kernel]: [string, Export], index: number): [string, Export] => [
      name,
      (...args) => {
        if (this.#tape === null) return kernel(...args)
        this.#tape.push(index, args.length, ...args)
      },
    ]
    return Object.fromEntries(Object.entries(exports as Record<string, Export>).map(wrap)) as T
  }

  /** The program of `count` units, at least two; null: it is too long for the board. */
  program(count: number, unit: Unit, scratch: number): Program | null {
    const tape = this.#record(unit, 0, scratch)
    if (tape.length > TAPE_MAX) return null
    const next = this.#record(unit, 1, scratch)
    const moved = this.#record(unit, 0, scratch + MOVED)
    const shifts = difference(tape, moved)
    assert(tape.length > 0 && shifts !== null, 'a unit of a job calls the same kernels wherever its scratch is')
    const own = shifts.map((shift) => shift / MOVED)
    const steps = difference(tape, next)
    // Of two units the second may be the one that differs.
    if (steps === null && count === 2) return { tape, steps: tape.map(() => 0), own, units: 1 }
    assert(steps !== null, 'all units of a job but the last call the same kernels')
    const last = this.#record(unit, count - 1, scratch)
    const isLike = last.length === tape.length && last.every((arg, i) => Object.is(arg, argument(tape[i]!, steps[i]!, count - 1)))
    return { tape, steps, own, units: isLike ? count : count - 1 }
  }

  #record(unit: Unit, number: number, scratch: number): number[] {
    const tape: number[] = []
    this.#tape = tape
    try {
      unit(number, scratch)
    } finally {
      this.#tape = null
    }
    return tape
  }
}

/** As a helper computes it. */
function argument(first: number, step: number, unit: number): number {
  return step === 0 ? first : first + unit * step
}

/** The difference of each number; null if the calls differ. */
function difference(from: Tape, to: Tape): number[] | null {
  if (from.length !== to.length) return null
  const found = from.map((arg, i) => (Object.is(arg, to[i]) ? 0 : to[i]! - arg))
  for (let at = 0; at < from.length; at += 2 + from[at + 1]!) if (found[at] !== 0 || found[at + 1] !== 0) return null
  return found
}
