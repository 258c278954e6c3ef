/** Random programs under random faults: some seeds. `npm run soak` runs more. */
import { expect, test } from '@jest/globals'
import { call } from '@postgrad/rpc'
import { simulate } from '../simulate/simulate.js'
import { freshAccount, served, sleep } from './faulty.suite.js'
import { faultyProgram, overFaultySeeds } from './faulty-programs.suite.js'

const SEEDS = 25

test(`FLT-5, FLT-9, FLT-10, RPC-9, RPC-22 ${SEEDS} seeds: each request is run at most once, every wait ends by its deadline, survivors hold nothing`, async () => {
  expect(await overFaultySeeds(SEEDS)).toEqual([])
})

test('FLT-7 a seed gives the same program, faults and run', async () => {
  for (let seed = 0; seed < 5; seed++) {
    const [one, other] = [await faultyProgram(seed), await faultyProgram(seed)]
    expect(other.plan).toEqual(one.plan)
    expect(other.account.ends).toEqual(one.account.ends)
    expect(other.simulation.trace.hash).toBe(one.simulation.trace.hash)
    expect(other.simulation.faults).toEqual(one.simulation.faults)
  }
})

test('the account notices what it is for: a request that is run twice, a wait that ends late, one that never ends', async () => {
  const account = freshAccount()
  await simulate({ workers: 2, rpcTimeoutMs: 0 }, async (sim) => {
    const main = sim.on('worker0').run(async () => {
      await call('worker1', served.echo, ['twice', 1, 0])
      await call('worker1', served.echo, ['twice', 1, 0])
      await account.wait('late', 20, () => sleep(100))
      void account.wait('never', 20, () => new Promise<never>(() => {}))
      await sleep(100)
    })
    await main
    account.close(sim)
  })
  expect(account.problems).toEqual([
    'twice was run 2 times',
    'late ended with value 80 ms after its deadline',
    'never on worker0 (id 0) should have ended at 120 ms',
  ])
})
