/**
 * One agent, many observers, after PyTorch's RPC tutorial (`examples/distributed/rpc/rl`): each observer plays CartPole and asks the agent for every
 * action; at the end of an episode the agent learns from all of them.
 */
import { currentWorker, expose, isPostgradError, type RRef, remote, rref, workerLocal } from 'postgrad'
import { CartPole, type State } from './cart-pole.js'
import type { Episode, Team } from './episode.js'
import { Policy } from './policy.js'
import { newTrajectory, type Trajectory, total } from './returns.js'

export class Observer {
  private readonly environment: CartPole

  constructor(seed: number) {
    this.environment = new CartPole(seed)
  }

  async runEpisode(agent: RRef<Agent>): Promise<void> {
    const [ask, me] = [agent.rpcSync(), currentWorker().info.name]
    let [state, ended] = [this.environment.reset(), false]
    let reported: Promise<unknown> = Promise.resolve()
    while (!ended) {
      // A report travels with the next question: both leave in one post, and a step waits once.
      const [action] = await Promise.all([ask.selectAction(me, state), reported])
      const step = this.environment.step(action)
      reported = ask.reportReward(me, step.reward)
      ;({ state, ended } = step)
    }
    await reported
    agent.dispose()
  }
}

export class Agent {
  readonly policy = new Policy()
  readonly observers: Map<string, RRef<Observer>>
  private readonly trajectories = new Map<string, Trajectory>()

  constructor({ observers, seed }: Team) {
    this.observers = new Map(observers.map((name, i) => [name, remote(name, Observer, [1000 * seed + i])]))
  }

  selectAction(observer: string, state: State): number | Promise<number> {
    return this.act([observer], [state])[0]!
  }

  reportReward(observer: string, reward: number): void {
    this.trajectories.get(observer)?.rewards.push(reward)
  }

  /** All observers play to the end of an episode, or die; then the policy takes a step. */
  async runEpisode(): Promise<Episode> {
    using self = rref<Agent>(this)
    const names = [...this.observers.keys()]
    await Promise.all(names.map((name) => this.play(name, self)))
    this.policy.learn(this.trajectories.values())
    const rewards = Array.from(this.trajectories.values(), (played) => total(played.rewards))
    return { rewards, lost: names.filter((name) => !this.observers.has(name)) }
  }

  protected async play(name: string, self: RRef<Agent>): Promise<void> {
    this.trajectories.set(name, newTrajectory())
    try {
      await this.observers.get(name)!.rpcAsync({ timeoutMs: 0 }).runEpisode(self)
    } catch (error) {
      if (!isPostgradError(error, 'WORKER_DIED') || this.observers.size === 1) throw error
      for (const known of [this.observers, this.trajectories]) known.delete(name)
    }
  }

  protected act(observers: readonly string[], states: readonly State[]): number[] {
    const actions = this.policy.act(states)
    observers.forEach((observer, i) => {
      this.trajectories.get(observer)?.states.push(states[i]!)
      this.trajectories.get(observer)?.actions.push(actions[i]!)
    })
    return actions
  }
}

const held = workerLocal<{ agent: Agent | null }>(() => ({ agent: null }))
/** The agent of this worker. */
export const agentOf = (team: Team, AgentClass: typeof Agent = Agent): Agent => {
  held().agent ??= new AgentClass(team)
  return held().agent!
}
/** On the agent's worker: one episode of all observers, then one step of the policy. */
export const episode = (team: Team): Promise<Episode> => agentOf(team).runEpisode()

expose({ Observer, Agent, episode })
