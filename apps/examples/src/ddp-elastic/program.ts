/**
 * Elastic training: trainers may die and join at any time. Each keeps its replica from round to round. A round is a process group of the living trainers. When one dies, the round
 * ends early for all, and the survivors start the next round from the replica with the most steps. A new trainer takes part from the next round on. No survivor
 * restarts; torchrun restarts all.
 */
import { crossEntropy, currentWorker, expose, Generator, isPostgradError, type RRef, remote, reportProgress } from 'postgrad'
import {
  allGatherObject,
  broadcastObjectList,
  DistributedDataParallel,
  destroyProcessGroup,
  getRank,
  initProcessGroup,
  isInitialized,
} from 'postgrad/distributed'
import { Adam } from 'postgrad/optim'
import { Cnn } from '../ddp/program.js'
import { stripes } from '../ddp/stripes.js'

export interface Options {
  readonly steps: number
  /** So many steps at most until newcomers are let in. */
  readonly roundSteps: number
  /** Of all trainers of a step together. */
  readonly batch: number
  readonly lr: number
  readonly seed: number
}

interface Round {
  readonly number: number
  readonly members: readonly string[]
  /** Where it ends. */
  readonly until: number
}

interface Outcome {
  /** How many steps this trainer has taken, in any group. */
  readonly step: number
  readonly loss: number
  /** In how many rounds it took part. */
  readonly rounds: number
  /** The sum of its parameters' elements. */
  readonly checksum: number
}

/** Errors that end a round early: a trainer died, before or after the group was made. */
const ENDS_ROUND = ['GROUP_BROKEN', 'WORKER_DIED', 'GROUP_TIMEOUT', 'UNKNOWN_WORKER', 'DDP_REDUCTION_UNFINISHED']

/** A replica, which lives as long as its worker. */
export class Trainer {
  private readonly model = new Cnn()
  private readonly optimizer: Adam
  private readonly options: Options
  private step = 0
  private loss = Number.NaN
  private rounds = 0

  constructor(options: Options) {
    this.options = options
    this.optimizer = new Adam(this.model.parameters(), { lr: options.lr })
  }

  /** Trains with the others as far as it goes. */
  async round({ number, members, until }: Round): Promise<Outcome> {
    try {
      await initProcessGroup({ name: `round ${number}`, ranks: members, timeoutMs: 10_000 })
      await this.train(until)
      this.rounds++
    } catch (error) {
      if (!ENDS_ROUND.some((code) => isPostgradError(error, code))) throw error
    } finally {
      if (isInitialized()) destroyProcessGroup()
    }
    let checksum = 0
    for (const parameter of this.model.parameters()) checksum += await parameter.detach().sum().item()
    return { step: this.step, loss: this.loss, rounds: this.rounds, checksum }
  }

  private async train(until: number): Promise<void> {
    const steps = await allGatherObject(this.step)
    const [rank, size] = [getRank(), steps.length]
    await this.takeFrom(steps.indexOf(Math.max(...steps)), rank)
    using ddp = await DistributedDataParallel.create(this.model)
    while (this.step < until) {
      // The samples of a step follow from its number alone, and each trainer takes its part of them.
      const { batch, seed } = this.options
      const { images, labels } = stripes(new Generator(1000 * seed + this.step), batch)
      const share = Math.floor(batch / size)
      this.optimizer.zeroGrad()
      const logits = await ddp.forward(images.narrow(0, rank * share, share))
      const loss = crossEntropy(logits, labels.narrow(0, rank * share, share))
      await ddp.backward(loss)
      // In one turn: a step is taken or not.
      this.optimizer.step()
      this.step++
      this.loss = await loss.item()
    }
  }

  /** Takes over the replica of the one that has come furthest: weights, running means, what the optimizer has gathered. */
  private async takeFrom(src: number, rank: number): Promise<void> {
    const state = [rank === src ? { step: this.step, model: this.model.stateDict(), optimizer: this.optimizer.stateDict() } : null]
    await broadcastObjectList(state, { src })
    if (rank === src) return
    const { step, model, optimizer } = state[0]!
    this.model.loadStateDict(model)
    this.optimizer.loadStateDict(optimizer)
    this.step = step
  }
}

export interface Report {
  /** The members of each round, and how far it came. */
  readonly rounds: readonly { readonly members: readonly string[]; readonly step: number; readonly loss: number }[]
  readonly last: Readonly<Record<string, Outcome>>
}

/** On the coordinator: rounds of all trainers alive, until all steps are taken. */
export async function coordinate(options: Options): Promise<Report> {
  const trainers = new Map<string, RRef<Trainer>>()
  const rounds: { readonly members: readonly string[]; readonly step: number; readonly loss: number }[] = []
  let last: Record<string, Outcome> = {}
  for (let [number, step] = [0, 0]; step < options.steps; number++) {
    for (const { name } of currentWorker().workers()) {
      if (name.startsWith('trainer') && !trainers.has(name)) trainers.set(name, remote(name, Trainer, [options]))
    }
    const members = [...trainers.keys()]
    if (members.length === 0) throw new Error('no trainer is left')
    const round = { number, members, until: Math.min(options.steps, step + options.roundSteps) }
    const outcomes = await Promise.all(members.map((name) => playedBy(trainers, name, round)))
    last = Object.fromEntries(outcomes.filter((each) => each !== null).map((each) => [each.name, each.outcome]))
    for (const { step: theirs } of Object.values(last)) step = Math.max(step, theirs)
    const furthest = Object.values(last).find((each) => each.step === step)
    rounds.push({ members, step, loss: furthest?.loss ?? Number.NaN })
    reportProgress({ done: step, total: options.steps, text: `${members.join(', ')}: step ${step}, loss ${furthest?.loss.toFixed(3)}` })
  }
  for (const trainer of trainers.values()) trainer.dispose()
  return { rounds, last }
}

/** Null: it has died, and is removed. */
async function playedBy(
  trainers: Map<string, RRef<Trainer>>,
  name: string,
  round: Round,
): Promise<{ readonly name: string; readonly outcome: Outcome } | null> {
  try {
    return { name, outcome: await trainers.get(name)!.rpcAsync({ timeoutMs: 0 }).round(round) }
  } catch (error) {
    if (!isPostgradError(error, 'WORKER_DIED')) throw error
    trainers.get(name)!.dispose()
    trainers.delete(name)
    return null
  }
}

expose({ Trainer, coordinate })
