/**
 * One agent, many observers, after PyTorch's RPC tutorial (`examples/distributed/rpc/rl`): each observer plays CartPole and asks the agent for every
 * action; at the end of an episode the agent learns from all of them.
 */
import { currentWorker, expose, isPostgradError, type RRef, remote, rref, type Tensor } from 'postgrad'
import { CartPole, type State } from './cart-pole.js'
import type { Episode, Team } from './episode.js'
import { Policy } from './policy.js'
import { newTrajectory, type Trajectory } from './returns.js'

export class Observer {
  private readonly environment: CartPole
  private readonly name: string

  constructor(name: string, seed: number) {
    this.name = name
    this.environment = new CartPole(seed)
  }

  async runEpisode(agent: RRef<Agent>): Promise<void> {
    const ask = agent.rpcSync()
    let state = this.environment.reset()
    let reported: Promise<unknown> = Promise.resolve()
    for (let ended = false; !ended; ) {
      // A report travels with the next question: both leave in one post, and a step waits once.
      const [action] = await Promise.all([ask.selectAction(this.name, state), reported])
      const step = this.environment.step(action)
      reported = ask.reportReward(this.name, step.reward, step.ended)
      ;({ state, ended } = step)
    }
    await reported
    agent.dispose()
  }
}

export class Agent {
  protected playing = 0
  private readonly policy = new Policy()
  private readonly trajectories = new Map<string, Trajectory>()
  private readonly observers: Map<string, RRef<Observer>>
  private readonly self: RRef<Agent> = rref<Agent>(this)

  constructor({ observers, seed }: Team) {
    this.observers = new Map(observers.map((name, i) => [name, remote(name, Observer, [name, 1000 * seed + i])]))
  }

  selectAction(observer: string, state: State): number | Promise<number> {
    return this.act([observer], [state])[0]!
  }

  reportReward(observer: string, reward: number, ended: boolean): void {
    this.trajectories.get(observer)?.rewards.push(reward)
    if (ended) this.leaves(observer)
  }

  /** All observers play to the end of an episode, or die; then the policy takes a step. */
  async runEpisode(): Promise<Episode> {
    const lost: string[] = []
    const play = async ([name, observer]: [string, RRef<Observer>]): Promise<void> => {
      this.trajectories.set(name, newTrajectory())
      this.playing++
      try {
        await observer.rpcAsync({ timeoutMs: 0 }).runEpisode(this.self)
      } catch (error) {
        if (!isPostgradError(error, 'WORKER_DIED') || this.observers.size === 1) throw error
        this.leaves(name)
        for (const known of [this.observers, this.trajectories]) known.delete(name)
        lost.push(name)
      }
    }
    await Promise.all([...this.observers].map(play))
    this.policy.learn(this.trajectories.values())
    return { rewards: [...this.trajectories.values()].map(({ rewards }) => rewards.reduce((sum, r) => sum + r, 0)), lost }
  }

  protected act(observers: readonly string[], states: readonly State[]): number[] {
    const actions = this.policy.act(states)
    observers.forEach((observer, i) => {
      this.trajectories.get(observer)?.states.push(states[i]!)
      this.trajectories.get(observer)?.actions.push(actions[i]!)
    })
    return actions
  }

  protected leaves(observer: string): void {
    const trajectory = this.trajectories.get(observer)
    if (trajectory === undefined || trajectory.ended) return
    trajectory.ended = true
    this.playing--
  }

  gradients(): Tensor[] {
    return this.policy.gradients()
  }

  close(): void {
    for (const held of [...this.observers.values(), this.self]) held.dispose()
  }
}

const AGENT = Symbol('agent')
/** The agent of this worker. */
export const agentOf = (team: Team, AgentClass: typeof Agent = Agent) => currentWorker().slot(AGENT, () => new AgentClass(team))
/** On the agent's worker: one episode of all observers, then one step of the policy. */
export const episode = (team: Team): Promise<Episode> => agentOf(team).runEpisode()

expose({ Observer, Agent, episode })
