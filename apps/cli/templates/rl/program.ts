/** The program that every worker loads. Observers play CartPole and ask the agent for each action; after an episode the agent learns from all of them. */
import { crossEntropy, expose, Generator, noGrad, type RRef, remote, rref, tensor } from 'postgrad'
import { Linear, ReLU, Sequential } from 'postgrad/nn'
import { Adam } from 'postgrad/optim'
import { isOver, next, STEPS_MAX, type State, start } from './cart-pole.js'

export const OBSERVERS = ['observer1', 'observer2']

interface Played {
  readonly states: readonly State[]
  readonly actions: readonly number[]
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
    const [states, actions]: [State[], number[]] = [[], []]
    for (let state = start(this.random); !isOver(state) && states.length < STEPS_MAX; ) {
      const left = await policy.rpcSync().chanceOfLeft(state)
      const action = this.random.uniform() < left ? 0 : 1
      states.push(state)
      actions.push(action)
      state = next(state, action)
    }
    return { states, actions }
  }
}

/** Lives on the agent's worker. */
export class Agent {
  private readonly policy = new Sequential(new Linear(4, 64), new ReLU(), new Linear(64, 2))
  private readonly optimizer = new Adam(this.policy.parameters(), { lr: 0.01 })

  chanceOfLeft(state: State): number | Promise<number> {
    return noGrad(() =>
      this.policy
        .forward(tensor([[...state]]))
        .softmax(1)
        .select(1, 0),
    ).item()
  }

  /** REINFORCE: an action counts as much as the steps that came after it, next to those of the other actions. */
  learn(played: readonly Played[]): void {
    const states = tensor(played.flatMap((each) => each.states.map((state) => [...state])))
    const actions = tensor(
      played.flatMap((each) => each.actions),
      { dtype: 'int32' },
    )
    const returns = tensor(played.flatMap(({ states }) => discounted(states.length)))
    const advantages = returns.sub(returns.mean()).div(returns.std().add(1e-6))
    this.optimizer.zeroGrad()
    crossEntropy(this.policy.forward(states), actions, { reduction: 'none' }).mul(advantages).mean().backward()
    this.optimizer.step()
  }
}

/** For each step of an episode, how many follow, the later ones for less. */
function discounted(length: number): number[] {
  return Array.from({ length }, (_, step) => (1 - 0.99 ** (length - step)) / (1 - 0.99))
}

/** On the agent's worker. Gives how long each episode lasted, as a mean of all observers. */
export async function main(episodes: number): Promise<number[]> {
  const agent = new Agent()
  const observers = OBSERVERS.map((name, i) => remote(name, Observer, [i]))
  const means: number[] = []
  for (let episode = 0; episode < episodes; episode++) {
    using self = rref(agent)
    const played = await Promise.all(observers.map((observer) => observer.rpcAsync({ timeoutMs: 0 }).play(self)))
    agent.learn(played)
    means.push(played.reduce((sum, { states }) => sum + states.length, 0) / played.length)
  }
  for (const observer of observers) observer.dispose()
  return means
}

expose({ Observer, Agent, main })
