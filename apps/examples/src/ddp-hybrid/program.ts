/**
 * Distributed data parallel and RPC together, after PyTorch's tutorial "Combining Distributed DataParallel with Distributed RPC Framework": an embedding table on a
 * parameter server, a dense part in a replica at each trainer, and a master that starts their training. One distributed pass goes from a trainer to the server
 * and back; the gradients of the dense part become the mean over the trainers before it ends.
 */
import {
  call,
  crossEntropy,
  DistributedOptimizer,
  distAutograd,
  expose,
  Generator,
  getAllRemoteParams,
  RemoteModule,
  reportProgress,
  type Tensor,
  tensor,
} from 'postgrad'
import { DistributedDataParallel, destroyProcessGroup, initProcessGroup } from 'postgrad/distributed'
import { EmbeddingBag, Linear, Module } from 'postgrad/nn'
import { SGD } from 'postgrad/optim'

const WIDTH = 16
const CLASSES = 8
/** Of a sample. */
const WORDS = 4

/** The rows of a bag, summed: the rows of a batch alone have gradients. */
export class Table extends Module {
  private readonly bag: EmbeddingBag

  constructor(rows: number) {
    super()
    this.bag = new EmbeddingBag(rows, WIDTH, { mode: 'sum', sparse: true })
  }

  /** int32 [N, WORDS] → [N, WIDTH] */
  forward(words: Tensor): Tensor {
    return this.bag.forward(words)
  }
}

export class HybridModel extends Module {
  private readonly table: RemoteModule<Table>
  readonly dense: DistributedDataParallel<Linear>

  constructor(table: RemoteModule<Table>, dense: DistributedDataParallel<Linear>) {
    super()
    this.table = table
    this.dense = dense
  }

  /** int32 [N, WORDS] → logits [N, CLASSES] */
  async forward(words: Tensor): Promise<Tensor> {
    return this.dense.forward(await this.table.forward(words))
  }
}

export interface Options {
  readonly server: string
  readonly trainers: readonly string[]
  readonly rows: number
  readonly batch: number
  readonly steps: number
  readonly lr: number
  readonly seed: number
}

export interface Report {
  readonly losses: readonly number[]
  /** Of the dense part. */
  readonly checksum: number
}

/** On a trainer: the loop. All words of a sample have its class as the remainder. */
export async function train(table: RemoteModule<Table>, options: Options): Promise<Report> {
  using remote = table
  const { trainers, rows, batch, steps, lr, seed } = options
  const group = await initProcessGroup({ ranks: trainers })
  const generator = new Generator(1000 * seed + group.rank)
  const model = new HybridModel(remote, await DistributedDataParallel.create(new Linear(WIDTH, CLASSES)))
  const parameters = [...(await remote.remoteParameters()), ...(await getAllRemoteParams(model.dense))]
  using optimizer = new DistributedOptimizer(SGD, parameters, { lr })
  const kinds = Math.min(CLASSES, rows)
  const losses: number[] = []
  for (let step = 1; step <= steps; step++) {
    const classes = Array.from({ length: batch }, () => generator.integer(0, kinds))
    const wordOf = (kind: number): number => kind + kinds * generator.integer(0, Math.ceil((rows - kind) / kinds))
    const words = classes.flatMap((kind) => Array.from({ length: WORDS }, () => wordOf(kind)))
    const labels = tensor(Int32Array.from(classes))
    await distAutograd.context(async (ctx) => {
      const logits = await model.forward(tensor(Int32Array.from(words)).reshape([batch, WORDS]))
      const loss = crossEntropy(logits, labels)
      await ctx.backward([loss])
      await optimizer.step(ctx)
      losses.push(await loss.item())
    })
    if (group.rank === 0) reportProgress({ done: step, total: steps, text: `step ${step}, loss ${losses.at(-1)!.toFixed(3)}` })
  }
  let checksum = 0
  for (const parameter of model.dense.parameters()) checksum += await parameter.detach().sum().item()
  for (const parameter of parameters) parameter.dispose()
  model.dense.dispose()
  destroyProcessGroup()
  return { losses, checksum }
}

/** On the master: makes the table and lets all trainers train. Gives their reports. */
export async function run(options: Options): Promise<Report[]> {
  using table = new RemoteModule<Table>(options.server, Table, [options.rows])
  return Promise.all(options.trainers.map((trainer) => call(trainer, train, [table, options], { timeoutMs: 0 })))
}

expose({ Table, train, run })
