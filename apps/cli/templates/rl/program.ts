/** The program that every worker loads. Observers play CartPole and ask the agent for each action; after an episode the agent learns from all of them. */
import { crossEntropy, expose, Generator, noGrad, type RRef, remote, rref, tensor } from 'postgrad'
import { Linear, ReLU, Sequential } from 'postgrad/nn'
import { Adam } from 'postgrad/optim'
import { ACTIONS, isOver, next, reward, STATE_SIZE, STEPS_MAX, type State, start } from './cart-pole.js'

export const OBSERVERS = ['observer1', 'observer2']

interface Played {
  readonly states: readonly State[]
  readonly actions: readonly number[]
  readonly rewards: readonly number[]
}

/** Lives on an observer's worker, next to its environment. */
export class Observer {
  private readonly random: Generator

  constructor(seed: number) {
    this.random = new Generator(seed)
  }

  /** One episode. The observer draws each action, so that it does not depend on which observer asks first. */
  async play(agent: RRef<Agent>): Promise<Played> {
    using policy = agent
    const [states, actions, rewards]: [State[], number[], number[]] = [[], [], []]
    for (let state = start(this.random); !isOver(state) && states.length < STEPS_MAX; ) {
      const action = draw(await policy.rpcSync().chances(state), this.random.uniform())
      states.push(state)
      actions.push(action)
      state = next(state, action)
      rewards.push(reward(state))
    }
    return { states, actions, rewards }
  }

  /** For `Checkpoints`, which save each worker's own generator by themselves, but not one that the program made. */
  stateDict() {
    return { random: this.random.stateDict() }
  }

  loadStateDict({ random }: ReturnType<Observer['stateDict']>): void {
    this.random.loadStateDict(random)
  }
}

/** The action whose share of [0, 1) has x. */
function draw(chances: readonly number[], x: number): number {
  let [action, sum] = [0, chances[0]!]
  while (x >= sum && action < chances.length - 1) sum += chances[++action]!
  return action
}

/** Lives on the agent's worker. */
export class Agent {
  private readonly policy = new Sequential(new Linear(STATE_SIZE, 64), new ReLU(), new Linear(64, ACTIONS))
  private readonly optimizer = new Adam(this.policy.parameters(), { lr: 0.01 })

  /** The chance of each action. */
  async chances(state: State): Promise<number[]> {
    return [...(await noGrad(() => this.policy.forward(tensor([[...state]])).softmax(1)).data())]
  }

  /** REINFORCE: an action counts as much as the rewards that came after it, next to those of the other actions. */
  learn(played: readonly Played[]): void {
    const states = tensor(played.flatMap((each) => each.states.map((state) => [...state])))
    const actions = tensor(
      played.flatMap((each) => each.actions),
      { dtype: 'int32' },
    )
    const returns = tensor(played.flatMap(({ rewards }) => discounted(rewards)))
    const advantages = returns.sub(returns.mean()).div(returns.std().add(1e-6))
    this.optimizer.zeroGrad()
    crossEntropy(this.policy.forward(states), actions, { reduction: 'none' }).mul(advantages).mean().backward()
    this.optimizer.step()
  }
}

/** For each step of an episode, the sum of its reward and those that follow, the later ones for less. */
function discounted(rewards: readonly number[]): number[] {
  const sums = [...rewards]
  for (let step = sums.length - 2; step >= 0; step--) sums[step]! += 0.99 * sums[step + 1]!
  return sums
}

/** On the agent's worker. Gives the sum of each episode's rewards, as a mean of all observers. */
export async function main(episodes: number): Promise<number[]> {
  const agent = new Agent()
  const observers = OBSERVERS.map((name, i) => remote(name, Observer, [i]))
  const means: number[] = []
  for (let episode = 0; episode < episodes; episode++) {
    using self = rref(agent)
    const played = await Promise.all(observers.map((observer) => observer.rpcAsync({ timeoutMs: 0 }).play(self)))
    agent.learn(played)
    means.push(played.flatMap(({ rewards }) => rewards).reduce((sum, each) => sum + each) / played.length)
  }
  for (const observer of observers) observer.dispose()
  return means
}

expose({ Observer, Agent, main })
