/** The agent's policy, a network 4-128-2, learns by REINFORCE with Adam. `program.ts` asks it. */
import { crossEntropy, currentGenerator, noGrad, type Tensor, tensor } from 'postgrad'
import { Linear, ReLU, Sequential } from 'postgrad/nn'
import { Adam } from 'postgrad/optim'
import type { State } from './cart-pole.js'
import { stacked, type Trajectory } from './returns.js'

export class Policy {
  private readonly net = new Sequential(new Linear(4, 128), new ReLU(), new Linear(128, 2))
  private readonly optimizer = new Adam(this.net.parameters(), { lr: 0.01 })

  /** An action for each state, drawn by their probabilities, in one pass. */
  act(states: readonly State[]): number[] {
    const probabilities = noGrad(() => this.net.forward(tensor(states.map((state) => [...state])))).softmax(1)
    return Array.from(probabilities.select(1, 0).dataSync(), (left) => (currentGenerator().uniform() < Number(left) ? 0 : 1))
  }

  /**
   * One step of REINFORCE. The policy did not change while these were played and has no dropout, so the probabilities of what was done are computed here
   * once, for all steps together, where PyTorch's tutorial keeps a graph per step.
   */
  learn(trajectories: Iterable<Trajectory>): void {
    const { states, actions, returns } = stacked(trajectories)
    this.optimizer.zeroGrad()
    crossEntropy(this.net.forward(states), actions, { reduction: 'none' }).mul(returns).sum().backward()
    this.optimizer.step()
  }

  parameters(): Tensor[] {
    return [...this.net.parameters()]
  }

  gradients(): Tensor[] {
    return this.parameters().map((parameter) => parameter.grad!)
  }
}
