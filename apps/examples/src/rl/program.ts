/**
 * One agent, many observers, after PyTorch's RPC tutorial (`examples/distributed/rpc/rl`): each observer plays CartPole and asks the agent for every
 * action; at the end of an episode the agent learns from all of them by REINFORCE. The policy does not change within an episode and has no
 * dropout, so the agent computes the probabilities of what was done once, for all steps together, where the tutorial keeps a graph per step.
 */
import {
  Adam,
  asyncExecution,
  crossEntropy,
  currentGenerator,
  currentWorker,
  expose,
  Future,
  isPostgradError,
  Linear,
  noGrad,
  ReLU,
  type RRef,
  remote,
  rref,
  Sequential,
  type Tensor,
  tensor,
} from 'postgrad'
import { CartPole, type State } from './cart-pole.js'
import type { Episode, Team } from './episode.js'
import { emptyTrajectory, stacked, type Trajectory } from './returns.js'

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
  protected readonly policy = new Sequential(new Linear(4, 128), new ReLU(), new Linear(128, 2))
  protected readonly playing = new Set<string>()
  private readonly optimizer = new Adam(this.policy.parameters(), { lr: 0.01 })
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

  async runEpisode(): Promise<Episode> {
    const lost: string[] = []
    const play = async ([name, observer]: [string, RRef<Observer>]): Promise<void> => {
      this.trajectories.set(name, emptyTrajectory())
      this.playing.add(name)
      try {
        await observer.rpcAsync({ timeoutMs: 0 }).runEpisode(this.self)
      } catch (error) {
        if (!isPostgradError(error, 'WORKER_DIED') || this.observers.size === 1) throw error
        lost.push(name)
        for (const known of [this.observers, this.trajectories]) known.delete(name)
        this.leaves(name)
      }
    }
    await Promise.all([...this.observers].map(play))
    this.learn()
    return { rewards: [...this.trajectories.values()].map(({ rewards }) => rewards.reduce((sum, r) => sum + r, 0)), lost }
  }

  protected act(observers: readonly string[], states: readonly State[]): number[] {
    const odds = noGrad(() => this.policy.forward(tensor(states.map((state) => [...state])))).softmax(1)
    const left = odds.select(1, 0).dataSync()
    return observers.map((observer, i) => {
      const action = currentGenerator().uniform() < Number(left[i]) ? 0 : 1
      this.trajectories.get(observer)?.states.push(states[i]!)
      this.trajectories.get(observer)?.actions.push(action)
      return action
    })
  }

  protected leaves(observer: string): void {
    this.playing.delete(observer)
  }

  private learn(): void {
    const { states, actions, returns } = stacked(this.trajectories.values())
    this.optimizer.zeroGrad()
    crossEntropy(this.policy.forward(states), actions, { reduction: 'none' }).mul(returns).sum().backward()
    this.optimizer.step()
  }

  gradients(): Tensor[] {
    return [...this.policy.parameters()].map((parameter) => parameter.grad!)
  }

  close(): void {
    for (const held of [...this.observers.values(), this.self]) held.dispose()
  }
}

/** Waits until everybody who plays has asked, and answers all by one pass of the policy. */
export class BatchedAgent extends Agent {
  private waiting = new Map<string, State>()
  private answer = new Future<ReadonlyMap<string, number>>()

  override selectAction(observer: string, state: State): Promise<number> {
    this.waiting.set(observer, state)
    const mine = this.answer.then((actions) => actions.get(observer)!)
    this.answerIfAllAsked()
    return mine
  }

  protected override leaves(observer: string): void {
    super.leaves(observer)
    this.waiting.delete(observer)
    this.answerIfAllAsked()
  }

  private answerIfAllAsked(): void {
    if (this.waiting.size === 0 || this.waiting.size < this.playing.size) return
    const [observers, states, { answer }] = [[...this.waiting.keys()], [...this.waiting.values()], this]
    this.waiting = new Map()
    this.answer = new Future()
    const actions = this.act(observers, states)
    answer.resolve(new Map(observers.map((observer, i) => [observer, actions[i]!])))
  }
}
asyncExecution(BatchedAgent.prototype.selectAction)

const AGENT = Symbol('agent')
const agentOf = (team: Team) => currentWorker().slot(AGENT, () => (team.batched ? new BatchedAgent(team) : new Agent(team)))
/** On the agent's worker: one episode of all observers, then one step of the policy. */
export const episode = (team: Team): Promise<Episode> => agentOf(team).runEpisode()
export const gradients = (team: Team): Tensor[] => agentOf(team).gradients()
export const finish = (team: Team): void => agentOf(team).close()

expose({ Observer, Agent, BatchedAgent, episode, gradients, finish })
