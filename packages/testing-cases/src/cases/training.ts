/**
 * A training that uses everything that a checkpoint restores: a model over three workers (one remote module inside another), dropout and data drawn by the
 * workers' generators, momentum in a distributed optimizer with groups, a schedule, running means, an object of the program on another worker.
 */
import { distAutograd } from '@postgrad/dist-autograd'
import { AdamW, BatchNorm1d, Dropout, ExponentialLR, Linear, Module } from '@postgrad/nn'
import { Checkpoints, DistributedOptimizer, getAllRemoteParams, RemoteModule } from '@postgrad/parallel'
import { expose, remote } from '@postgrad/rpc'
import { rand, type Tensor } from '@postgrad/tensor'

export class TrainedLeaf extends Module {
  readonly linear = new Linear(4, 4)
  readonly dropout = new Dropout(0.5)
  forward(x: Tensor): Tensor {
    return this.dropout.forward(this.linear.forward(x))
  }
}

export class TrainedMiddle extends Module {
  readonly norm = new BatchNorm1d(4)
  readonly leaf: RemoteModule<TrainedLeaf>
  constructor(to: string) {
    super()
    this.leaf = new RemoteModule(to, TrainedLeaf)
  }
  async forward(x: Tensor): Promise<Tensor> {
    return await this.leaf.forward(this.norm.forward(x))
  }
  end(): void {
    this.leaf.dispose()
  }
}

/** A program's state outside its model. */
export class Journal {
  private entries: number[] = []
  note(loss: number): number {
    return this.entries.push(loss)
  }
  stateDict(): { entries: number[] } {
    return { entries: [...this.entries] }
  }
  loadStateDict({ entries }: { entries: number[] }): void {
    if (!Array.isArray(entries)) throw new TypeError('no journal')
    this.entries = [...entries]
  }
}

class Model extends Module {
  readonly head = new Linear(4, 4)
  readonly middle = new RemoteModule('worker1', TrainedMiddle, ['worker2'])
  async forward(x: Tensor): Promise<Tensor> {
    return await this.middle.forward(this.head.forward(x))
  }
}

export interface TrainingPlan {
  readonly directory: string
  /** 0: from the start; else the checkpoint of that step is loaded. */
  readonly from: number
  readonly to: number
  /** Save a checkpoint at each of these steps. */
  readonly saveAt?: readonly number[]
}

export interface TrainingReport {
  readonly losses: readonly number[]
  readonly weights: unknown
  readonly journal: readonly number[]
  readonly lr: readonly number[]
  /** Restored by a checkpoint. */
  readonly note: unknown
}

/** Exposed; runs as worker0. */
export async function train({ directory, from, to, saveAt = [] }: TrainingPlan): Promise<TrainingReport> {
  const training = await begin()
  const { params: _, ...parts } = training
  const checkpoints = new Checkpoints(directory)
  const losses: number[] = []
  let note: unknown = null
  try {
    if (from > 0) note = (await checkpoints.load(parts, { step: from })).values.note
    for (let step = from + 1; step <= to; step++) {
      losses.push(await oneStep(training))
      if (saveAt.includes(step)) await checkpoints.save(step, { ...parts, note: { step, odd: [-0, Number.NaN], big: 5n } })
    }
    return await reportOf(training, losses, note)
  } finally {
    await end(training)
  }
}

export interface StepsPlan {
  readonly directory: string
  readonly until: number
  readonly every: number
  /** The run breaks off in the middle of this step, after its backward and its step of the optimizer; 0: never. */
  readonly stopAt: number
}

/** The same training as one loop over `Checkpoints.steps`. Exposed; runs as worker0. */
export async function trainInSteps({ directory, until, every, stopAt }: StepsPlan): Promise<TrainingReport> {
  const training = await begin()
  const { params: _, ...parts } = training
  const kept = { losses: [] as number[], first: 0 }
  try {
    for await (const step of new Checkpoints(directory, { keep: 2 }).steps({ ...parts, kept }, { until, every })) {
      kept.losses.push(await oneStep(training))
      if (step === stopAt) throw new RangeError('stopped')
      if (kept.first === 0) kept.first = step
    }
    return await reportOf(training, kept.losses, kept.first)
  } finally {
    // After a death nothing else can be ended in order.
    await end(training).catch(() => {})
  }
}

type Training = Awaited<ReturnType<typeof begin>>

async function begin() {
  const model = new Model()
  const journal = remote('worker2', Journal, [])
  const params = await getAllRemoteParams(model)
  const optimizer = new DistributedOptimizer(AdamW, [{ params: params.slice(0, 2), lr: 0.1 }, { params: params.slice(2) }], { lr: 0.05 })
  const scheduler = new ExponentialLR(optimizer, { gamma: 0.9 })
  return { model, optimizer, scheduler, journal, params }
}

async function oneStep({ model, optimizer, scheduler, journal }: Training): Promise<number> {
  const result = await distAutograd.context(async (ctx) => {
    const loss = (await model.forward(rand([3, 4]))).mul(rand([3, 4])).sum()
    await ctx.backward([loss])
    await optimizer.clipGradNorm(ctx, 1)
    await optimizer.step(ctx)
    const value = await loss.item()
    await journal.call('note', [value])
    return value
  })
  scheduler.step()
  return result
}

async function reportOf({ optimizer, journal, params }: Training, losses: readonly number[], note: unknown): Promise<TrainingReport> {
  const weights: unknown[] = []
  for (const param of params) weights.push((await param.toHere()).detach().toArray())
  const lr = optimizer.paramGroups.map((group) => group.lr)
  return { losses, weights, journal: (await journal.call('stateDict', [])).entries, lr, note }
}

async function end({ model, optimizer, journal, params }: Training): Promise<void> {
  await model.middle.getModuleRref().call('end', [])
  for (const each of [...params, model.middle, journal, optimizer]) each.dispose()
}

expose({ TrainedLeaf, TrainedMiddle, Journal, trainWithCheckpoints: train, trainInSteps })
