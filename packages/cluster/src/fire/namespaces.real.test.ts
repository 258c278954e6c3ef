/** Two processes with keys in two network namespaces, the link between them cut and healed, or cut for good. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test as anyTest, beforeEach, expect } from '@jest/globals'
import { FireMember } from './fire-process.fixture.js'
import type { Told } from './fixtures/fire-member.js'
import { TrainingAtHome } from './fixtures/fire-model.js'
import { TwoHosts, whyNoNamespaces } from './namespaces.fixture.js'

const CONNECTION = { heartbeatMs: 100, suspectMs: 300, deadMs: 2500, graceMs: 2500 }
const KEY = Buffer.alloc(32, 9).toString('base64')
/** Within `deadMs`: TCP itself takes up to twice as long to try again. */
const SHORT_MS = 400
/** A death takes `deadMs` and `graceMs` together, and this is a busy machine. */
const DEADLINE_MS = 20_000
const STEPS = 5

const why = whyNoNamespaces()
if (why !== null) console.warn(`two hosts are left out, since network namespaces cannot be made here: ${why}`)
const test = why === null ? anyTest : anyTest.skip

let hosts: TwoHosts
let directory: string
let members: readonly FireMember[] = []
beforeEach(async () => {
  if (why !== null) return
  hosts = TwoHosts.make()
  directory = mkdtempSync(join(tmpdir(), 'postgrad-hosts-'))
  const options = {
    initMethod: `tcp://${hosts.addresses[0]}:29500`,
    worldSize: 2,
    connection: CONNECTION,
    // Namespaces share their files, so the Unix sockets of the other could be reached: of two hosts they could not.
    transports: ['tcp'],
    timeoutMs: DEADLINE_MS,
    key: KEY,
  } as const
  members = ([0, 1] as const).map((rank) => new FireMember(rank, options, hosts.through(rank)))
  await Promise.all(members.map((member) => member.ready()))
})
afterEach(async () => {
  await Promise.all(members.map((member) => member.kill()))
  members = []
  hosts?.close()
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
})

const sleep = (delayMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, delayMs))

/** Rank 1 trains, and each step is compared. */
function training(): { readonly steps: number[]; readonly over: Promise<Told> } {
  const home = new TrainingAtHome()
  const steps: number[] = []
  members[1]!.listen((told) => {
    if (told.told !== 'step') return
    expect(told.bits).toEqual(home.bits(told.bits.step))
    steps.push(told.bits.step)
  })
  members[1]!.tell({ ask: 'train', plan: { directory, resume: true, steps: STEPS, saveEvery: 1000 } })
  const over = members[1]!.hear(DEADLINE_MS, ({ told }) => told === 'trained')
  over.catch(() => {})
  return { steps, over }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(5)
}

test('INI-11: a link that is cut and healed in time costs nothing: training goes on with the same bits', async () => {
  const { steps, over } = training()
  await until(() => steps.length >= 2)
  hosts.cut()
  // Some reports may be on their way; then none comes, for as long as the cut lasts.
  for (let seen = -1; seen < steps.length; await sleep(SHORT_MS)) seen = steps.length
  const before = steps.length
  hosts.heal()
  await until(() => steps.length >= before + STEPS)
  members[1]!.tell({ ask: 'enough' })
  expect(await over).toEqual({ told: 'trained', failure: null })
  expect(steps).toEqual(steps.map((_, i) => i + 1))
  for (const member of members) member.tell({ ask: 'shutdown' })
  await Promise.all(members.map((member) => member.end(DEADLINE_MS)))
  expect(members.map(({ code, complaints }) => [code, complaints])).toEqual([
    [0, ''],
    [0, ''],
  ])
})

test('INI-11: cut for longer, each says by name whom it has lost, and ends', async () => {
  const { steps, over } = training()
  const waited = members[0]!.hear(DEADLINE_MS, ({ told }) => told === 'waited')
  members[0]!.tell({ ask: 'wait', worker: 'worker1' })
  await until(() => steps.length >= 2)
  hosts.cut()
  const [there, here] = (await Promise.all([over, waited])) as Extract<Told, { failure: unknown }>[]
  expect(there!.failure).toMatchObject({ isTyped: true, message: expect.stringContaining("worker 'worker0' (id 0) died") })
  expect(here!.failure).toMatchObject({
    isTyped: true,
    code: 'WORKER_DIED',
    message: expect.stringContaining("worker 'worker1' (id 1) died"),
  })
  for (const member of members) member.tell({ ask: 'close' })
  await Promise.all(members.map((member) => member.end(DEADLINE_MS)))
  expect(members.map(({ code, complaints }) => [code, complaints])).toEqual([
    [0, ''],
    [0, ''],
  ])
})
