/**
 * Rows of reinforcement learning: the example's program (an agent, its observers, CartPole, REINFORCE at the end of each episode), in environment steps a
 * second. A step is two calls, so the raw limit is two round trips of a MessagePort.
 */
import { type Cluster, launch } from 'postgrad'
import type { LazyTorch } from '../peers/torch-peer.js'
import type { Contestant, RowPlan } from '../row.js'
import type { ThreadPair } from '../thread-pair.js'

/** Compiled by the example; they are named here and not imported, since no app imports another. */
const PROGRAMS = new URL('../../../examples/dist/rl/', import.meta.url)
const OBSERVERS = [1, 2, 4, 8, 16, 32] as const
/** As many as PyTorch's figure is known for. */
const BESIDE_TORCH = 2
const TORCH_SHARE = 0.05
const STEPS = 8000

interface Episode {
  readonly rewards: readonly number[]
}

/** One cluster at a time: the last row's ends when the next one begins. */
export class RlStage {
  private cluster: { readonly key: string; readonly launched: Cluster } | null = null

  /** Plays whole episodes until there were n steps, and gives the seconds that n took. */
  plays(count: number, batched: boolean): Contestant {
    const observers = Array.from({ length: count }, (_, i) => `observer${i + 1}`)
    return async (n) => {
      const agent = (await this.of(batched ? 'batched.js' : 'program.js', observers)).on('agent')
      const started = performance.now()
      let steps = 0
      while (steps < n) {
        const { rewards } = (await agent.run(batched ? 'batchedEpisode' : 'episode', { observers, seed: 1 })) as Episode
        steps += rewards.reduce((sum, reward) => sum + reward, 0)
      }
      return ((performance.now() - started) / 1000) * (n / steps)
    }
  }

  async close(): Promise<void> {
    await this.cluster?.launched.close({ timeoutMs: 0 })
    this.cluster = null
  }

  private async of(program: string, observers: readonly string[]): Promise<Cluster> {
    const key = `${program} ${observers.length}`
    if (this.cluster?.key === key) return this.cluster.launched
    await this.close()
    const launched = await launch(new URL(program, PROGRAMS), { workers: ['agent', ...observers] })
    this.cluster = { key, launched }
    return launched
  }
}

/** @param torch the same program in PyTorch with that many observers; null where there is none */
export function rlRows(stage: RlStage, raw: ThreadPair, torch: LazyTorch | null): RowPlan[] {
  return [false, true].flatMap((batched) =>
    OBSERVERS.map(
      (count): RowPlan => ({
        name: `rl, ${count} ${count === 1 ? 'observer' : 'observers'}${batched ? ', batched' : ''}`,
        unit: 'steps/s',
        n: STEPS,
        figure: (seconds, n) => n / seconds,
        higherIsBetter: true,
        ours: stage.plays(count, batched),
        limit: (n) => raw.roundTrip(2 * n),
        peers:
          torch !== null && count === BESIDE_TORCH && !batched
            ? { [torch.name]: { run: torch.work(1 + count, 'rl_steps', count), share: TORCH_SHARE } }
            : {},
        aim: (limit) => limit / 2,
      }),
    ),
  )
}
