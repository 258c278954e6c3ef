/**
 * A parameter server with embedding tables too large to send: only the rows that a batch looks up travel, and gradients come back as these rows.
 * After PyTorch's batch RPC example (`examples/distributed/rpc/batch/parameter_server.py`): the trainers step together, by calls that the server
 * answers when the last call has arrived, or each for itself.
 */
import {
  asyncExecution,
  call,
  cat,
  currentWorker,
  distAutograd,
  expose,
  Future,
  Generator,
  type RRef,
  randn,
  remote,
  reportProgress,
  SparseTensor,
  type Tensor,
} from 'postgrad'
import { Embedding } from 'postgrad/nn'
import { Adagrad } from 'postgrad/optim'
import { rated } from './ratings.js'

export interface Options {
  readonly mode: 'together' | 'alone'
  readonly trainers: readonly string[]
  readonly users: number
  readonly items: number
  /** Of a row. */
  readonly width: number
  readonly batch: number
  readonly steps: number
  readonly lr: number
  readonly seed: number
}

type Gradients = ReadonlyMap<Tensor, Tensor>

export class ParameterServer {
  readonly users: Embedding
  readonly items: Embedding
  private readonly optimizer: Adagrad
  private readonly trainers: readonly string[]
  private arrived = new Map<string, Gradients>()
  private stepped = new Future<void>()

  constructor({ users, items, width, lr, trainers }: Options) {
    this.users = table(users, width)
    this.items = table(items, width)
    this.optimizer = new Adagrad([this.users.weight, this.items.weight], { lr })
    this.trainers = trainers
  }

  /** int32 [N] each → [N, width] each */
  lookUp(users: Tensor, items: Tensor): [Tensor, Tensor] {
    return [this.users.forward(users), this.items.forward(items)]
  }

  /** Steps with the gradients that this context has left here. */
  step(): void {
    this.optimizer.step(gradientsHere())
  }

  /** Steps for all trainers when the last of them has come; all of them wait until then. */
  stepTogether(trainer: string): Promise<void> {
    this.arrived.set(trainer, gradientsHere())
    const { arrived, stepped, trainers } = this
    if (arrived.size === trainers.length) {
      this.arrived = new Map()
      this.stepped = new Future()
      // In their order, and not in that of their arrival, so that the sums have the same bits in every run.
      this.optimizer.step(meanOf(trainers.map((name) => arrived.get(name)!)))
      stepped.resolve()
    }
    return stepped
  }
}
asyncExecution(ParameterServer.prototype.stepTogether)

function table(rows: number, width: number): Embedding {
  return Embedding.fromPretrained(randn([rows, width]).mul(0.3), { freeze: false, sparse: true })
}

const gradientsHere = (): Gradients => distAutograd.currentContext()!.gradients()

/** As if all batches were one: the rows of all, one after another; rows of one index add up. */
function meanOf(all: readonly Gradients[]): Gradients {
  const mean = (parameter: Tensor): Tensor => {
    const parts = all.map((gradients) => gradients.get(parameter) as SparseTensor)
    const values = cat(parts.map((part) => part.values())).div(all.length)
    return new SparseTensor(cat(parts.map((part) => part.indices())), values, parameter.shape)
  }
  return new Map([...all[0]!.keys()].map((parameter) => [parameter, mean(parameter)]))
}

/** On a trainer: the loop. A rating is the product of two rows, one of each table. Gives the loss of every step. */
export async function train(server: RRef<ParameterServer>, options: Options): Promise<number[]> {
  using ps = server
  const { mode, trainers, users, items, batch, steps, seed } = options
  const me = currentWorker().info.name
  const generator = new Generator(1000 * seed + trainers.indexOf(me))
  const losses: number[] = []
  for (let step = 1; step <= steps; step++) {
    const batchOf = rated(generator, batch, users, items)
    const loss = await distAutograd.context(async (ctx) => {
      const [user, item] = await ps.rpcSync().lookUp(batchOf.users, batchOf.items)
      const loss = user.mul(item).sum(1).sub(batchOf.ratings).pow(2).mean()
      await ctx.backward([loss])
      await (mode === 'together' ? ps.rpcSync().stepTogether(me) : ps.rpcSync().step())
      return loss.item()
    })
    losses.push(loss)
    if (me === trainers[0]) reportProgress({ done: step, total: steps, text: `step ${step}, loss ${loss.toFixed(3)}` })
  }
  return losses
}

/** On the server: makes the tables and lets all trainers train. Gives their losses, one list each. */
export async function run(options: Options): Promise<number[][]> {
  using server = remote(currentWorker().info, ParameterServer, [options])
  return Promise.all(options.trainers.map((trainer) => call(trainer, train, [server, options], { timeoutMs: 0 })))
}

expose({ ParameterServer, train, run })
