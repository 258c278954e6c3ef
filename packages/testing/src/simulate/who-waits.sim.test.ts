/** Programs that are stuck, each in another way, and what the report says of each. */
import { expect, test } from '@jest/globals'
import type { PostgradError } from '@postgrad/base'
import { currentJobs } from '@postgrad/jobs'
import { initProcessGroup } from '@postgrad/process-group'
import { call, expose, type RRef, remote, stream } from '@postgrad/rpc'
import { type SimCluster, type SimulateOptions, simulate } from './simulate.js'

const never = () => new Promise<never>(() => {})
const askNever = (to: string): Promise<unknown> => call(to, never)
/** Each asks the other's serial agent from within its own. */
class Agent {
  static readonly serial = true
  async ask(other: RRef<Agent>): Promise<string> {
    const asked = other.call('answer', [])
    await asked
    other.dispose()
    return 'asked'
  }
  answer(): string {
    return 'answer'
  }
}
// biome-ignore lint/correctness/useYield: it never comes to one
async function* silent(): AsyncGenerator<number> {
  await never()
}
expose({ 'waits.never': never, 'waits.askNever': askNever, 'waits.silent': silent, 'waits.Agent': Agent })

async function fails(body: (sim: SimCluster) => Promise<unknown>, options: Partial<SimulateOptions> = {}): Promise<PostgradError> {
  const error = await simulate({ workers: 3, rpcTimeoutMs: 0, ...options }, body).then(
    () => null,
    (thrown: PostgradError) => thrown,
  )
  if (error === null) throw new Error('it went on')
  return error
}

test('TK-24 a call that nobody answers: who serves it, for whom, over every hop', async () => {
  const error = await fails((sim) => sim.on('worker0').run(() => call('worker1', askNever, ['worker2'])))
  expect(error).toMatchObject({ code: 'SIM_DEADLOCK', values: { cycles: [], stuck: ['worker2 serving waits.never for worker1'] } })
  expect(error.values.waits).toEqual([
    "worker0's program waits for waits.askNever from worker 'worker1'",
    "worker1 serving waits.askNever for worker0 waits for waits.never from worker 'worker2'",
  ])
  expect(error.message).toContain('Who waits for whom:\n  worker0')
  expect(error.message).toContain('each waits for a promise that nobody settles')
})

test('TK-24 two serial actors that ask each other: the cycle is named, from one back to it', async () => {
  // Under some orders one has done before the other begins.
  const seed = 1
  const error = await fails(
    (sim) =>
      sim.on('worker0').run(async () => {
        const [one, other] = [remote('worker1', Agent, []), remote('worker2', Agent, [])]
        await Promise.all([one.toHere(), other.toHere()].map((made) => made.catch(() => {})))
        await Promise.all([one.call('ask', [other]), other.call('ask', [one])])
      }),
    { seed },
  )
  const cycles = error.values.cycles as string[][]
  expect(cycles).toHaveLength(1)
  expect(cycles[0]).toHaveLength(5)
  expect(cycles[0]![0]).toBe(cycles[0]!.at(-1))
  expect([...cycles[0]!].sort()).toEqual(expect.arrayContaining(["worker1 serving call of 'answer' for worker2"]))
  expect(error.message).toMatch(/waits for its turn at Agent, which is at it for worker\d serving .*ask.* for worker0/)
  expect(error.message).toContain('Cycle: worker')
})

test('TK-24 two process groups that wait for each other’s members', async () => {
  const join = (name: string) => initProcessGroup({ name, ranks: ['worker0', 'worker1'], timeoutMs: 0 })
  const error = await fails((sim) => Promise.all([sim.on('worker0').run(() => join('one')), sim.on('worker1').run(() => join('other'))]))
  const waits = (error.values.waits as string[]).join('\n')
  expect(waits).toContain("initProcessGroup 'one' of 2 workers, in which worker0 waits for worker1")
  expect(waits).toContain("initProcessGroup 'other' of 2 workers, in which worker1 waits for worker0")
  expect((error.values.cycles as string[][]).length).toBeGreaterThan(0)
})

test('TK-24 streams, references, jobs, and what a worker waits for in itself', async () => {
  const error = await fails(
    (sim) =>
      Promise.all([
        sim.on('worker0').run(async () => {
          for await (const _ of stream('worker1', silent, [])) throw new Error('it said something')
        }),
        sim.on('worker1').run(() => remote('worker2', never, []).toHere()),
        sim.on('worker2').run(() => remote('worker2', never, []).toHere()),
        sim.on('worker2').run(() => currentJobs('pool').run(never, [])),
      ]),
    { jobs: { pool: {} } },
  )
  const waits = (error.values.waits as string[]).join('\n')
  expect(waits).toContain("worker0's program waits for a stream of waits.silent from worker 'worker1'")
  expect(waits).toContain("worker1's program waits for toHere from worker 'worker2'")
  expect(waits).toMatch(/worker2 serving toHere for worker1 waits for the value of .*RRef/)
  expect(waits).toMatch(/worker2's program waits for the value of .*RRef/)
  expect(waits).toContain("worker2's program waits for job waits.never")
  expect(error.values.stuck).toEqual(expect.arrayContaining(['worker2 serving a remote call for worker1']))
})

test('TK-24 where a deadline ends the wait, its error tells who waited for whom when nothing but time could pass', async () => {
  const error = await fails((sim) => sim.on('worker0').run(() => call('worker1', askNever, ['worker2'])), { rpcTimeoutMs: 5000, seed: 7 })
  expect(error).toMatchObject({ code: 'RPC_TIMEOUT', waits: { stuck: ['worker2 serving waits.never for worker1'] } })
  expect(error.stack).toContain('(seed 7)\nAt 4000 ms nothing could happen any more but for time to pass. Who waits for whom:')
  expect(error.message).not.toContain('Who waits')
})

test('TK-24 who has crashed is named', async () => {
  const error = await fails(async (sim) => {
    sim.crash('worker1')
    await sim.on('worker0').run(() => call('worker2', never))
  })
  expect(error).toMatchObject({ code: 'SIM_DEADLOCK', values: { crashed: ['worker1'] } })
  expect(error.message).toContain('Crashed: worker1.')
})

test('TK-24 nobody waits: a program that waits for something real says no more than before', async () => {
  const error = await fails(async () => await new Promise(() => {}))
  expect(error).toMatchObject({ code: 'SIM_DEADLOCK', values: { waits: [], cycles: [], stuck: [], crashed: [] } })
  expect(error.message).not.toContain('Who waits')
})
