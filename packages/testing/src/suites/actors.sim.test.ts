/** Serial actors under random programs: trees of calls over several actors and workers, cancelled at random, with a worker that dies. */
import { describe, expect, test } from '@jest/globals'
import { currentScope } from '@postgrad/base/internal'
import { Actor, currentWorker, expose, type RRef, remote } from '@postgrad/rpc'
import fc from 'fast-check'
import { expectClean } from '../check/expect-clean.js'
import { inlined } from '../inlined/inlined.js'
import { simulate } from '../simulate/simulate.js'

const TIMEOUT_MS = 400
const RUNS = 60

const sleep = (ms: number): Promise<void> => {
  const { clock } = currentWorker()
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve)
  })
}

/** One call: it takes a while, then calls others, all at once. */
interface Plan {
  readonly ms: number
  readonly calls: readonly { readonly to: number; readonly plan: Plan }[]
}

class Station extends Actor {
  static readonly serial = true
  /** The chains that are served now, and by how many calls. */
  private readonly inside = new Map<bigint, number>()
  private readonly problems: string[] = []

  /** Gives how many calls were made below it, itself included. */
  async work(plan: Plan, stations: readonly RRef<Station>[]): Promise<number> {
    const chain = currentScope().chain as bigint
    const others = [...this.inside.keys()].filter((other) => other !== chain)
    if (others.length > 0) this.problems.push(`${chain} came in while ${others} was served`)
    this.inside.set(chain, (this.inside.get(chain) ?? 0) + 1)
    try {
      await sleep(plan.ms)
      const below = await Promise.all(plan.calls.map(({ to, plan: next }) => stations[to]!.call('work', [next, stations])))
      return below.reduce((sum, count) => sum + count, 1)
    } finally {
      const left = (this.inside.get(chain) as number) - 1
      if (left === 0) this.inside.delete(chain)
      else this.inside.set(chain, left)
      for (const station of stations) station.dispose()
    }
  }

  state(): { readonly problems: readonly string[]; readonly inside: number } {
    return { problems: this.problems, inside: this.inside.size }
  }
}

/** Asks who asks it. */
class Asker {
  async ask(station: RRef<Host>, n: number): Promise<number> {
    using ref = station
    return n === 0 ? 0 : 1 + (await ref.call('askedBy', [n - 1]))
  }
}

class Host extends Actor {
  static readonly serial = true
  private readonly asker: RRef<Asker>
  constructor(asker: RRef<Asker>) {
    super()
    this.asker = asker
  }
  async askedBy(n: number): Promise<number> {
    return await this.asker.call('ask', [this.self, n])
  }
  end(): void {
    this.asker.dispose()
  }
}
expose({ 'actors.Station': Station, 'actors.Asker': Asker, 'actors.Host': Host })

const STATIONS = ['worker1', 'worker2', 'worker3', 'worker1']

const { plan } = fc.letrec<{ plan: Plan }>((tie) => ({
  plan: fc.record({
    ms: fc.nat(5),
    calls: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constant([]),
      fc.array(fc.record({ to: fc.nat(STATIONS.length - 1), plan: tie('plan') }), { minLength: 1, maxLength: 3 }),
    ),
  }),
}))

function size({ calls }: Plan): number {
  return calls.reduce((sum, { plan: next }) => sum + size(next), 1)
}

describe('serial actors', () => {
  test('ACT-1, ACT-3, ACT-4 random trees of calls: one chain at a time, every call ends, nothing stays inside', async () => {
    const roots = fc.array(fc.record({ plan, to: fc.nat(STATIONS.length - 1), cancelMs: fc.option(fc.nat(30), { freq: 4 }) }), {
      minLength: 1,
      maxLength: 5,
    })
    await fc.assert(
      fc.asyncProperty(fc.nat(1_000_000), roots, fc.boolean(), async (seed, calls, isCrashing) => {
        const simulation = await simulate({ workers: 4, seed, rpcTimeoutMs: TIMEOUT_MS }, async (sim) =>
          sim.on('worker0').run(async () => {
            const stations = STATIONS.map((worker) => remote(worker, Station, []))
            for (const station of stations) await station.created()
            const ends = calls.map(async ({ plan: root, to, cancelMs }) => {
              const future = stations[to]!.call('work', [root, stations])
              if (cancelMs !== null) void sleep(cancelMs).then(() => future.cancel())
              try {
                return (await future) === size(root) ? 'done' : 'too few'
              } catch (error) {
                return (error as { code: string }).code
              }
            })
            if (isCrashing) {
              await sleep(seed % 20)
              sim.crash('worker3')
            }
            const codes = await Promise.all(ends)
            // Cancelled calls run to their end.
            await sleep(10 * TIMEOUT_MS)
            const states = []
            for (const [i, station] of stations.entries()) {
              if (!isCrashing || STATIONS[i] !== 'worker3') states.push(await station.call('state', []))
              station.dispose()
            }
            return { codes, states }
          }),
        )
        const { codes, states } = simulation.result
        // Chains that wait for each other's actors end by their deadline.
        const allowed = ['done', 'RPC_TIMEOUT', 'CALL_CANCELLED', ...(isCrashing ? ['WORKER_DIED'] : [])]
        expect(codes.filter((code) => !allowed.includes(code))).toEqual([])
        if (calls.length === 1 && !isCrashing && calls[0]!.cancelMs === null) expect(codes).toEqual(['done'])
        expect(states).toEqual(states.map(() => ({ problems: [], inside: 0 })))
        expectClean(simulation, { except: isCrashing ? ['worker3'] : [], allow: ['deadLetters'] })
      }),
      { numRuns: RUNS },
    )
  })

  test('ACT-3 chains hold in the inlined program too', async () => {
    const count = await inlined({ workers: 3 }, (cluster) =>
      cluster.on('worker0').run(async () => {
        const asker = remote('worker2', Asker, [])
        const host = remote('worker1', Host, [asker])
        return await Promise.all([host.call('askedBy', [3]), host.call('askedBy', [2])])
      }),
    )
    expect(count).toEqual([3, 2])
  })
})
