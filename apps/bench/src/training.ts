/**
 * Steps of distributed training that worker0 takes, with worker1 as the server; their twins of the same names are in `python/torch_peer.py`. Workers
 * load this module, and with it `passes.ts` and `remote-step.ts`.
 */
import {
  asyncExecution,
  call,
  cat,
  crossEntropy,
  DistributedOptimizer,
  distAutograd,
  expose,
  Future,
  ones,
  RemoteModule,
  type RRef,
  remote,
  rref,
  SparseTensor,
  type Tensor,
  tensor,
} from 'postgrad'
import { Embedding, Linear, LSTM } from 'postgrad/nn'
import { Adagrad, SGD } from 'postgrad/optim'
import { currentRuntime } from 'postgrad/plugin'
import './passes.js'
import './remote-step.js'

/** The sizes of PyTorch's RNN example. */
const TOKENS = 7
const [EMBEDDING, HIDDEN, LAYERS, LENGTH, BATCH] = [2, 3, 4, 6, 5]

/** A step that is made once per worker and done n times; gives the seconds. */
async function steps(n: number, name: string, make: () => Promise<() => Promise<void>>): Promise<number> {
  const step = await currentRuntime().slot(Symbol.for(`postgrad.bench.${name}`), make)
  const started = performance.now()
  for (let i = 0; i < n; i++) await step()
  return (performance.now() - started) / 1000
}

const integers = (count: number, below: number): Tensor =>
  tensor(
    Array.from({ length: count }, (_, i) => (7919 * (i + 1)) % below),
    { dtype: 'int32' },
  )

/** Embedding and decoder on worker1, LSTM here: forward, backward, and a step of SGD on both. */
export const rnnSteps = (n: number): Promise<number> =>
  steps(n, 'rnn', async () => {
    const encoder = new RemoteModule('worker1', Embedding, [TOKENS, EMBEDDING])
    const decoder = new RemoteModule('worker1', Linear, [HIDDEN, TOKENS])
    const core = new LSTM(EMBEDDING, HIDDEN, { numLayers: LAYERS })
    const parameters = [...(await encoder.remoteParameters()), ...core.parameters().map(rref), ...(await decoder.remoteParameters())]
    const optimizer = new DistributedOptimizer(SGD, parameters, { lr: 0.05 })
    const input = integers(LENGTH * BATCH, TOKENS).reshape([LENGTH, BATCH])
    const target = integers(LENGTH * BATCH, TOKENS)
    return () =>
      distAutograd.context(async (ctx) => {
        const [output] = core.forward(await encoder.forward(input))
        const logits = await decoder.forward(output)
        await ctx.backward([crossEntropy(logits.reshape([LENGTH * BATCH, TOKENS]), target)])
        await optimizer.step(ctx)
      })
  })

/** Two tables, of which rows are looked up; stepped with the rows' gradients that a context has left here. */
export class Tables {
  private readonly tables: readonly Embedding[]
  private readonly optimizer: Adagrad
  private arrived: ReadonlyMap<Tensor, Tensor>[] = []
  private stepped = new Future<void>()

  constructor(rows: number, width: number) {
    const table = () => Embedding.fromPretrained(ones([rows, width]), { freeze: false, sparse: true })
    this.tables = [table(), table()]
    this.optimizer = new Adagrad(
      this.tables.map(({ weight }) => weight),
      { lr: 0.1 },
    )
  }

  lookUp(users: Tensor, items: Tensor): Tensor[] {
    return [this.tables[0]!.forward(users), this.tables[1]!.forward(items)]
  }

  step(): void {
    this.optimizer.step(distAutograd.currentContext()!.gradients())
  }

  /** Steps with the rows of all trainers when the last of them has come; all wait until then. */
  stepTogether(trainers: number): Promise<void> {
    const { arrived, stepped } = this
    arrived.push(distAutograd.currentContext()!.gradients())
    if (arrived.length === trainers) {
      this.arrived = []
      this.stepped = new Future()
      const sum = (of: Tensor) => {
        const parts = arrived.map((gradients) => gradients.get(of) as SparseTensor)
        return new SparseTensor(cat(parts.map((part) => part.indices())), cat(parts.map((part) => part.values())), of.shape)
      }
      this.optimizer.step(new Map(this.tables.map(({ weight }) => [weight, sum(weight)])))
      stepped.resolve()
    }
    return stepped
  }
}
asyncExecution(Tables.prototype.stepTogether)

/** Two tables of 100,000 rows on worker1; `batch` rows of each there, their gradients back, and a step of Adagrad on them. */
export const serverSteps = (n: number, batch: number): Promise<number> =>
  steps(n, `server ${batch}`, async () => {
    const server: RRef<Tables> = remote('worker1', Tables, [100_000, 16])
    const [users, items] = [integers(batch, 100_000), integers(batch, 99_991)]
    return () =>
      distAutograd.context(async (ctx) => {
        const [user, item] = await server.rpcSync().lookUp(users, items)
        await ctx.backward([user!.mul(item!).sum(1).pow(2).mean()])
        await server.rpcSync().step()
      })
  })

/** On a trainer: n of them; `trainers` step together. */
export async function trainTogether(tables: RRef<Tables>, n: number, batch: number, trainers: number): Promise<void> {
  using server = tables
  const [users, items] = [integers(batch, 100_000), integers(batch, 99_991)]
  for (let i = 0; i < n; i++) {
    await distAutograd.context(async (ctx) => {
      const [user, item] = await server.rpcSync().lookUp(users, items)
      await ctx.backward([user!.mul(item!).sum(1).pow(2).mean()])
      await server.rpcSync().stepTogether(trainers)
    })
  }
}

/** The tables here, on worker0; the trainers are the others. A step is one of all of them. */
export const togetherSteps = async (n: number, batch: number, trainers: readonly string[]): Promise<number> => {
  const server = await currentRuntime().slot(TABLES, async () => rref(new Tables(100_000, 16)))
  const started = performance.now()
  const train = (trainer: string) => call(trainer, trainTogether, [server, n, batch, trainers.length], { timeoutMs: 0 })
  await Promise.all(trainers.map(train))
  return (performance.now() - started) / 1000
}

const TABLES = Symbol.for('postgrad.bench.tables')

expose({ Embedding, Linear, Tables, rnnSteps, serverSteps, trainTogether, togetherSteps })
