/**
 * The same with batched calls: the agent waits until every playing observer has asked, and answers all by one pass of the policy. PyTorch: the
 * tutorial on batch RPC (`async_execution`).
 */
import { asyncExecution, expose, Future, type RRef } from 'postgrad'
import type { State } from './cart-pole.js'
import type { Episode, Team } from './episode.js'
import { Agent, agentOf } from './program.js'

export class BatchedAgent extends Agent {
  private playing = 0
  private waiting = new Map<string, State>()
  private answer = new Future<ReadonlyMap<string, number>>()

  override selectAction(observer: string, state: State): Promise<number> {
    this.waiting.set(observer, state)
    const mine = this.answer.then((actions) => actions.get(observer)!)
    this.answerIfAllAsked()
    return mine
  }

  protected override async play(name: string, self: RRef<Agent>): Promise<void> {
    this.playing++
    try {
      await super.play(name, self)
    } finally {
      this.playing--
      this.waiting.delete(name)
      this.answerIfAllAsked()
    }
  }

  private answerIfAllAsked(): void {
    if (this.waiting.size === 0 || this.waiting.size < this.playing) return
    const { answer, waiting } = this
    this.answer = new Future()
    this.waiting = new Map()
    // Not in the order in which they asked: so the same seed gives the same run, wherever the observers are.
    const observers = [...this.observers.keys()].filter((observer) => waiting.has(observer))
    const states = observers.map((observer) => waiting.get(observer)!)
    const actions = this.act(observers, states)
    answer.resolve(new Map(observers.map((observer, i) => [observer, actions[i]!])))
  }
}
asyncExecution(BatchedAgent.prototype.selectAction)

/** On the agent's worker, as `episode`. */
export const batchedEpisode = (team: Team): Promise<Episode> => agentOf(team, BatchedAgent).runEpisode()

expose({ BatchedAgent, batchedEpisode })
