/** Programs on a device with a memory of its own, whose bytes come when the schedule lets them: for the tests of each lane. */
import { expect } from '@jest/globals'
import { currentScope } from '@postgrad/base/internal'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { Generator } from '@postgrad/tensor'
import { residentDevice } from '@postgrad/tensor/suite'
import { generate, type Mode } from '@postgrad/testing-cases/programs'
import { crashRun } from './programs/crash.suite.js'
import { oraclesOf, simulatedRun } from './programs/oracle.suite.js'

export const there: ReturnType<typeof residentDevice> = residentDevice()
const atOnce = there.home.arrival
const TURNS_MAX = 5

/** Runs `fn` while the bytes for a worker come up to 5 turns later, those of each read for themselves; the schedule orders these turns with messages. */
export async function whileLate<T>(seed: number, fn: () => Promise<T>): Promise<T> {
  const random = new Generator(seed)
  there.home.arrival = async () => {
    const worker = currentScope().worker as WorkerRuntime | null
    const turns = random.integer(0, TURNS_MAX + 1)
    for (let i = 0; i < turns && worker !== null; i++) {
      await new Promise<void>((resolve) => {
        worker.clock.defer(resolve)
      })
    }
  }
  try {
    return await fn()
  } finally {
    there.home.arrival = atOnce
  }
}

/** The bits of the inlined program on the device. */
export async function expectSameBits(seed: number, mode: Mode): Promise<void> {
  const program = generate(seed)
  const oracle = (await oraclesOf(program, there.spec))[mode]
  for (const overtaking of [false, true]) {
    const { problem } = await whileLate(seed, () => simulatedRun(program, oracle, seed, mode, { device: there.spec, overtaking }))
    expect({ seed, mode, problem }).toEqual({ seed, mode, problem: null })
  }
}

/** How a program ends whose workers crash. */
export async function expectTypedEnd(seed: number): Promise<string | null> {
  const { end, problems } = await whileLate(seed, () => crashRun(seed, seed % 2 === 0 ? 'smart' : 'fast', there.spec))
  expect({ seed, problems }).toEqual({ seed, problems: [] })
  return end
}
