/**
 * The same task by an actor with a critic and a replay buffer: each episode is a job, which takes the weights into a thread of the pool and returns its
 * steps. Steps are used several times, weighted by the clipped ratio of their probabilities now and then (Schulman et al. 2017).
 */
import { currentGenerator, expose, gather, logSoftmax, minimum, noGrad, type Tensor, tensor, workerLocal } from 'postgrad'
import { currentJobs } from 'postgrad/jobs'
import { clipGradNorm_, Linear, Module, Sequential, type StateDict, Tanh } from 'postgrad/nn'
import { Adam } from 'postgrad/optim'
import { CartPole, type State } from './cart-pole.js'
import type { Episode, Team } from './episode.js'
import { ReplayBuffer } from './replay-buffer.js'
import { advantages, standardized } from './returns.js'

const CAPACITY = 4096
const BATCH = 256
const UPDATES = 16
const CLIP = 0.2
/** Against the actor's loss: the critic's, and the reward for not deciding too early. */
const CRITIC_SHARE = 0.005
const ENTROPY_SHARE = 0.01
/** Of a step in the buffer: state, action, its log-probability then, advantage, the critic's target. */
const COLUMNS = { state: [0, 4], action: [4, 1], logProbability: [5, 1], advantage: [6, 1], target: [7, 1] } as const
const WIDTH = 8
const SEEDS = 2 ** 31

export class ActorCritic extends Module {
  private readonly body = new Sequential(new Linear(4, 128), new Tanh())
  private readonly actor = new Linear(128, 2)
  private readonly critic = new Linear(128, 1)

  /** [N, 4] → log-probabilities [N, 2], values [N] */
  forward(states: Tensor): [Tensor, Tensor] {
    const hidden = this.body.forward(states)
    return [logSoftmax(this.actor.forward(hidden), 1), this.critic.forward(hidden).squeeze(1)]
  }
}

/** Input of a rollout. */
export interface RolloutTask {
  readonly weights: StateDict
  readonly seed: number
}

/** The job: one episode with these weights, as rows of the buffer. */
export function rollout({ weights, seed }: RolloutTask): Tensor {
  const model = new ActorCritic()
  model.loadStateDict(weights)
  const environment = new CartPole(seed)
  const look = (state: State): [number, number, number] => {
    const [odds, value] = noGrad(() => model.forward(tensor([[...state]])))
    return [...(odds.dataSync() as Float32Array), Number(value.dataSync()[0])] as [number, number, number]
  }
  const [rows, rewards, values]: [number[][], number[], number[]] = [[], [], []]
  let state = environment.reset()
  for (;;) {
    const [left, right, value] = look(state)
    const action = currentGenerator().uniform() < Math.exp(left) ? 0 : 1
    rows.push([...state, action, action === 0 ? left : right])
    values.push(value)
    const step = environment.step(action)
    rewards.push(step.reward)
    state = step.state
    if (!step.ended) continue
    const { advantages: better, targets } = advantages(rewards, values, step.fallen ? 0 : look(state)[2])
    return tensor(rows.map((row, i) => [...row, better[i]!, targets[i]!]))
  }
}

export class Learner {
  private readonly model = new ActorCritic()
  private readonly optimizer = new Adam(this.model.parameters(), { lr: 0.01 })
  private readonly buffer = new ReplayBuffer(CAPACITY, WIDTH)

  async runEpisode({ observers }: Team): Promise<Episode> {
    const weights = this.model.stateDict()
    const tasks = observers.map((): RolloutTask => ({ weights, seed: currentGenerator().integer(0, SEEDS) }))
    const rewards: number[] = []
    for await (const steps of currentJobs('rollouts').map(rollout, tasks)) {
      rewards.push(steps.shape[0]!)
      this.buffer.push(steps)
    }
    for (let i = 0; i < UPDATES; i++) this.learn(this.buffer.sample(Math.min(BATCH, this.buffer.length)))
    return { rewards, lost: [] }
  }

  gradients(): Tensor[] {
    return [...this.model.parameters()].map((parameter) => parameter.grad!)
  }

  private learn(batch: Tensor): void {
    const column = (name: keyof typeof COLUMNS): Tensor => batch.narrow(1, COLUMNS[name][0], COLUMNS[name][1])
    const [odds, values] = this.model.forward(column('state'))
    const now = gather(odds, 1, column('action').to('int32')).squeeze(1)
    const ratio = now.sub(column('logProbability').squeeze(1)).exp()
    const advantage = tensor(standardized([...(column('advantage').reshape([-1]).dataSync() as Float32Array)]))
    const actorLoss = minimum(ratio.mul(advantage), ratio.clamp(1 - CLIP, 1 + CLIP).mul(advantage))
      .mean()
      .neg()
    const criticLoss = values.sub(column('target').squeeze(1)).square().mean()
    const negativeEntropy = odds.exp().mul(odds).sum(1).mean()
    this.optimizer.zeroGrad()
    actorLoss.add(criticLoss.mul(CRITIC_SHARE)).add(negativeEntropy.mul(ENTROPY_SHARE)).backward()
    clipGradNorm_([...this.model.parameters()], 0.5)
    this.optimizer.step()
  }
}

const learner = workerLocal(() => new Learner())
/** On the agent's worker: one episode for each observer, in jobs, then some steps of actor and critic. */
export const actorCriticEpisode = (team: Team): Promise<Episode> => learner().runEpisode(team)
export const actorCriticGradients = (): Tensor[] => learner().gradients()

expose({ rollout, actorCriticEpisode, actorCriticGradients })
