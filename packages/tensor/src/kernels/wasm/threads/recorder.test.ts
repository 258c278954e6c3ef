/** A program that was recorded of two units has the calls of all units, to the bit. */
import { expect, test } from '@jest/globals'
import { TAPE_MAX } from './board.js'
import { type Program, Recorder, type Unit } from './recorder.js'

type Call = readonly number[]

/** Two kernels that note how they were called, the recorder over them, and the notes. */
function recorded() {
  const recorder = new Recorder()
  const calls: Call[] = []
  const { first, second } = recorder.over({
    first: (...args: number[]) => void calls.push([0, ...args]),
    second: (...args: number[]) => void calls.push([1, ...args]),
  })
  return { recorder, calls, first, second }
}

/** The calls of a unit, as a helper makes them of the program. */
function replayed({ tape, steps, own }: Program, unit: number, shift: number): Call[] {
  const calls: Call[] = []
  for (let at = 0; at < tape.length; ) {
    const count = tape[at + 1]!
    const call = [tape[at]!]
    for (at += 2; call.length <= count; at++)
      call.push(steps[at] === 0 && own[at] === 0 ? tape[at]! : tape[at]! + unit * steps[at]! + own[at]! * shift)
    calls.push(call)
  }
  return calls
}

test('arguments move with the unit and with its scratch; nothing is computed meanwhile', () => {
  const { recorder, calls, first, second } = recorded()
  const unit: Unit = (i, scratch) => {
    first(3, 1000 + 40 * i, scratch + 16)
    second(scratch, -0, Number.NaN, Number.NEGATIVE_INFINITY, 7 - i)
  }
  const program = recorder.program(5, unit, 64)!
  expect([calls.length, program.units]).toEqual([0, 5])
  for (const [i, scratch] of [
    [0, 64],
    [3, 64],
    [4, 4096],
  ] as const) {
    calls.length = 0
    unit(i, scratch)
    expect(replayed(program, i, scratch - 64)).toEqual(calls)
  }
})

test('a last unit that is smaller, or that calls something else, is left out', () => {
  const { recorder, first, second } = recorded()
  const rows =
    (n: number, part: number): Unit =>
    (i) =>
      first(Math.min(part, n - i * part))
  expect([recorder.program(3, rows(25, 10), 0)!.units, recorder.program(3, rows(30, 10), 0)!.units]).toEqual([2, 3])
  // Of two, the second itself is recorded.
  const two = recorder.program(2, rows(15, 10), 0)!
  expect([two.units, replayed(two, 0, 0), replayed(two, 1, 0)]).toEqual([2, [[0, 10]], [[0, 5]]])
  const other: Unit = (i, scratch) => (i === 1 ? second(i) : first(i, scratch))
  const differs = recorder.program(2, other, 32)!
  expect([differs.units, replayed(differs, 0, 100)]).toEqual([1, [[0, 0, 132]]])
})

test('a unit with more calls than the board holds is not recorded; units that differ in the middle are a bug', () => {
  const { recorder, first, second } = recorded()
  const many =
    (calls: number): Unit =>
    () => {
      for (let i = 0; i < calls; i++) first(1, 2)
    }
  expect(recorder.program(4, many(TAPE_MAX / 4 + 1), 0)).toBeNull()
  expect(recorder.program(4, many(TAPE_MAX / 4), 0)).not.toBeNull()
  expect(() => recorder.program(3, (i) => (i === 1 ? second(1) : first(1)), 0)).toThrow(
    'all units of a job but the last call the same kernels',
  )
  expect(() => recorder.program(3, () => {}, 0)).toThrow('a unit of a job calls the same kernels')
})

test('after a unit that throws, kernels compute again', () => {
  const { recorder, calls, first } = recorded()
  const fails: Unit = () => {
    throw new Error('in the unit')
  }
  expect(() => recorder.program(2, fails, 0)).toThrow('in the unit')
  first(9)
  expect(calls).toEqual([[0, 9]])
})
