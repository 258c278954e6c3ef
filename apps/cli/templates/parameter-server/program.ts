/** The program that every worker loads. A server keeps a large embedding table; trainers get only the rows that they look up, and gradients come back as these rows. */
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
  rref,
  SparseTensor,
  type Tensor,
  tensor,
} from 'postgrad'
import { Embedding } from 'postgrad/nn'
import { Adagrad } from 'postgrad/optim'

export const TRAINERS = ['trainer1', 'trainer2']
const [ROWS, WIDTH, BATCH] = [100_000, 8, 64]

/** Lives on the server's worker. */
export class Server {
  private readonly table = Embedding.fromPretrained(randn([ROWS, WIDTH]).mul(0.1), { freeze: false, sparse: true })
  private readonly optimizer = new Adagrad([this.table.weight], { lr: 0.5 })
  private arrived = new Map<string, SparseTensor>()
  private stepped = new Future<void>()

  /** int32 [N] → [N, WIDTH] */
  lookUp(ids: Tensor): Tensor {
    return this.table.forward(ids)
  }

  /** Takes the gradient that this context has left here. When all trainers have called, the server steps, and answers all. */
  step(trainer: string): Promise<void> {
    this.arrived.set(trainer, distAutograd.currentContext()!.gradients().get(this.table.weight) as SparseTensor)
    const { arrived, stepped } = this
    if (arrived.size === TRAINERS.length) {
      this.arrived = new Map()
      this.stepped = new Future()
      // In the order of the names: the order in which calls arrive changes no bit.
      const parts = TRAINERS.map((name) => arrived.get(name)!)
      const values = cat(parts.map((part) => part.values())).div(parts.length)
      const mean = new SparseTensor(cat(parts.map((part) => part.indices())), values, this.table.weight.shape)
      this.optimizer.step(new Map([[this.table.weight, mean]]))
      stepped.resolve()
    }
    return stepped
  }
}
// The worker serves other calls while a caller of `step` waits.
asyncExecution(Server.prototype.step)

/** On a trainer: a sample is two ids, and its target is +1 if both are even or both odd, else −1. Replace it by your own data. */
export async function train(server: RRef<Server>, steps: number): Promise<number[]> {
  using ps = server
  const me = currentWorker().info.name
  const random = new Generator(TRAINERS.indexOf(me))
  // Few ids are frequent, most are rare.
  const ids = () => Array.from({ length: BATCH }, () => Math.floor(ROWS * random.uniform() ** 12))
  const losses: number[] = []
  for (let step = 0; step < steps; step++) {
    const [left, right] = [ids(), ids()]
    const targets = tensor(left.map((id, i) => ((id + right[i]!) % 2 === 0 ? 1 : -1)))
    await distAutograd.context(async (ctx) => {
      const rows = await ps.rpcSync().lookUp(tensor([...left, ...right], { dtype: 'int32' }))
      const loss = rows
        .narrow(0, 0, BATCH)
        .mul(rows.narrow(0, BATCH, BATCH))
        .sum(1)
        .sub(targets)
        .pow(2)
        .mean()
      await ctx.backward([loss])
      await ps.rpcSync().step(me)
      losses.push(await loss.item())
    })
  }
  return losses
}

/** On the server's worker. Gives the losses of each trainer. */
export async function main(steps: number): Promise<number[][]> {
  using server = rref(new Server())
  return Promise.all(TRAINERS.map((name) => call(name, train, [server, steps], { timeoutMs: 0 })))
}

expose({ Server, train, main })
