/** The weights of a simulated cluster in one file, and back, in any order of messages, also if a worker dies. On threads: `packages/postgrad`. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { loadSafetensors } from '@postgrad/nn'
import { loadFromAnother, saveAndLoadModel } from '@postgrad/testing-cases'
import { expectClean } from '../check/expect-clean.js'
import { simulate } from '../simulate/simulate.js'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'postgrad-full-state-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const planIn = (name: string) => ({
  scattered: join(directory, `${name}.safetensors`),
  local: join(directory, `${name}-local.safetensors`),
})

test.each([1, 2, 3])('FS-1 the file has the bytes of the model in one place, and goes back (seed %i)', async (seed) => {
  const plan = planIn(`whole-${seed}`)
  const simulation = await simulate({ workers: 3, seed }, (sim) => sim.on('worker0').run(saveAndLoadModel, plan))
  expectClean(simulation)
  expect(simulation.result).toEqual({ saved: 'same', savedAgain: 'same', changed: [true, true], codes: [] })
})

test('FS-3 a worker that dies, anywhere, leaves a whole file or none, and no part of a load', async () => {
  const seen = new Set<string>()
  for (let nth = 1, alive = 0; alive < 1; nth++) {
    const plan = planIn(`death-${nth}`)
    const faults = [{ match: { to: 'worker1', nth }, do: 'crash' as const }]
    const { result, faults: injected } = await simulate({ workers: 3, seed: nth, faults, shrink: false }, (sim) =>
      sim.on('worker0').run(saveAndLoadModel, plan),
    )
    if (injected.crash === 0) alive++
    expect(readdirSync(directory).filter((name) => name.endsWith('.tmp'))).toEqual([])
    // Any file can be read whole.
    if (result.saved !== 'none') await loadSafetensors(readFileSync(plan.scattered))
    expect([nth, result.saved]).not.toEqual([nth, 'other'])
    // Either every survivor has the new weights, or none.
    expect([nth, new Set(result.changed).size]).toEqual([nth, 1])
    for (const code of result.codes) seen.add(code)
    seen.add(`${result.saved} ${result.changed[0]}`)
  }
  // Before the save, in the load, after it.
  expect([...seen]).toEqual(expect.arrayContaining(['WORKER_DIED', 'none false', 'same false', 'same true']))
})

// With the last, an owner learns of the load's end and another of the death.
test.each([1, 2, 7])(
  'FS-3 the worker that loads dies, anywhere: all owners have the old weights, or all have the new ones (seed %i)',
  async (seed) => {
    const seen = new Set<string>()
    for (let nth = 1, alive = 0; alive < 1; nth++) {
      const faults = [{ match: { to: 'worker3', nth }, do: 'crash' as const }]
      const { result, faults: injected } = await simulate({ workers: 4, seed, faults, shrink: false }, (sim) =>
        sim.on('worker0').run(loadFromAnother, join(directory, `dying-${seed}-${nth}.safetensors`)),
      )
      if (injected.crash === 0) alive++
      expect([nth, new Set(result.changed).size]).toEqual([nth, 1])
      seen.add(`${result.end} ${result.changed[0]}`)
    }
    expect([...seen]).toEqual(expect.arrayContaining(['WORKER_DIED false', 'loaded true']))
  },
)
