/** Every kind of message under every fault, with one seed. `npm run soak` takes more. */
import { describe, expect, test } from '@jest/globals'
import { call, currentWorker, shutdown } from '@postgrad/rpc'
import { simulate } from '../simulate/simulate.js'
import { counted, FAULTS, KINDS, TIMEOUT_MS, underEveryFault, WORKERS } from './fault-matrix.suite.js'
import { freshAccount, served } from './faulty.suite.js'

describe('FLT-5, FLT-9, FLT-10 every kind of message under every fault', () => {
  test('the program uses every kind of message: a new kind gets a step here, or a reason in ABSENT', async () => {
    const { ends, counts } = await counted(1)
    expect(KINDS.filter((kind) => !counts.has(kind))).toEqual([])
    expect([...counts.keys()].filter((kind) => !(KINDS as readonly string[]).includes(kind))).toEqual([])
    expect(ends).toEqual([
      ...['x', 'RangeError: thrown on purpose', 'relay/worker2/worker0/worker1'],
      ...[expect.any(Number), expect.any(Number), expect.any(Number), 'WIRE_UNSUPPORTED_VALUE'],
      ...[1, 'stopped', 'normal: true', '0,1,2,3,4', 'CALL_CANCELLED'],
      ...new Array(3).fill(WORKERS.join()),
      ...[6, 6, 6],
      ...[undefined, undefined, [48, 48]],
      ...['TypeError: a backward that fails on purpose', 'TypeError: a backward that fails on purpose', undefined],
    ])
  })

  test.each(KINDS)('%s', (kind) => underEveryFault(kind, 0))
})

test.each(FAULTS.filter(([, fault]) => fault.do !== 'crash' && fault.do !== 'restart'))(
  'SHD-1, SHD-3 GROUP_UPDATE under %s: workers shut down together all the same',
  async (_, fault) => {
    for (let seed = 0; seed < 4; seed++) {
      const account = freshAccount()
      const match =
        fault.timesEach === undefined ? { kind: 'GROUP_UPDATE' as const, nth: 1 + (seed % 4) } : { kind: 'GROUP_UPDATE' as const }
      const simulation = await simulate({ workers: WORKERS, seed, faults: [{ match, ...fault }] }, async (sim) => {
        const ends = WORKERS.map((name) =>
          sim.on(name).run(async () => {
            const to = WORKERS[(currentWorker().info.id + 1) % 3] as string
            const called = account.wait('echo', TIMEOUT_MS, () => call(to, served.echo, [name, 'x', 10]))
            await account.wait('shutdown', 2 * TIMEOUT_MS, () => shutdown({ timeoutMs: 2 * TIMEOUT_MS }))
            return await called
          }),
        )
        return await Promise.all(ends)
      })
      expect({ seed, ends: simulation.result, problems: account.problems }).toEqual({ seed, ends: ['x', 'x', 'x'], problems: [] })
      expect(account.ends).toEqual(new Map([['value', 6]]))
      expect(Object.values(simulation.faults).some((count) => count > 0)).toBe(true)
    }
  },
)
