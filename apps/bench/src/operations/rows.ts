/**
 * Some 250 operations and layers, forward and backward, each at 1,000 and 1,000,000 elements or at a usual size: a name, and a function that does the
 * work once. `python/operations.py` has the same rows in PyTorch, under the same names.
 */
import {
  add,
  cat,
  compile,
  einsum,
  grad,
  maximum,
  noGrad,
  onesLike,
  rand,
  randint,
  randn,
  randperm,
  type Tensor,
  where,
  zeros,
} from 'postgrad'
import {
  BatchNorm2d,
  Conv1d,
  Conv2d,
  ConvTranspose2d,
  Embedding,
  GRU,
  LayerNorm,
  Linear,
  LSTM,
  MultiheadAttention,
  ReLU,
  Sequential,
  Tanh,
  TransformerEncoderLayer,
} from 'postgrad/nn'
import { crossEntropy, dropout, maxPool2d, oneHot, pad } from 'postgrad/nn/functional'
import { Adam } from 'postgrad/optim'

export type Work = () => unknown
type Add = (name: string, work: Work) => void

const LARGE = 1_000_000
export const SIZES = [1000, LARGE] as const

export function operationRows(): ReadonlyMap<string, Work> {
  const rows = new Map<string, Work>()
  const row: Add = (name, work) => void rows.set(name, work)
  for (const n of SIZES) plainRows(n, (name, work) => row(`${name} ${n}`, () => noGrad(() => work())))
  productRows((name, work) => row(name, () => noGrad(() => work())))
  for (const n of SIZES) gradientRows(n, row)
  layerRows(row)
  matrixRows(row)
  return rows
}

/** Chains of cheap operations, and of a polynomial among them; `compile` computes them in one pass. */
const CHAINS: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  'chain of 8': (x) => x.mul(2).add(1).mul(x).relu().sub(x).abs().add(3).div(x),
  'gelu by hand': (x) => x.mul(x).mul(x).mul(0.044715).add(x).mul(0.7978845608).tanh().add(1).mul(x).mul(0.5),
}
const chains = Object.entries(CHAINS).flatMap(([name, chain]) => [[name, chain] as const, [`${name}, compiled`, compile(chain)] as const])

const leaf = (shape: readonly number[]) => rand(shape, { requiresGrad: true })

function plainRows(n: number, row: Add): void {
  const [x, y] = [add(rand([n]), 0.1), add(rand([n]), 0.1)]
  const mask = rand([n]).gt(0.5)
  const table = rand([1000, n / 1000])
  const index = randint(0, n, [n], { dtype: 'int32' })
  const [double, whole, none] = [x.to('float64'), x.mul(100).to('int32'), zeros([n], { dtype: 'bool' })]
  const side = Math.floor(n ** 0.5)
  const square = rand([side, side])
  const classes = randint(0, 10, [n / 10], { dtype: 'int32' })
  row('add', () => x.add(y))
  row('mul', () => x.mul(y))
  row('div', () => x.div(y))
  row('exp', () => x.exp())
  row('log', () => x.log())
  row('tanh', () => x.tanh())
  row('sigmoid', () => x.sigmoid())
  row('gelu', () => x.gelu())
  row('pow2.5', () => x.pow(2.5))
  row('sin', () => x.sin())
  for (const [name, chain] of chains) row(name, () => chain(x))
  row('where', () => where(mask, x, y))
  row('gt', () => x.gt(y))
  row('sum', () => x.sum())
  row('mean', () => x.mean())
  row('var', () => x.var())
  row('amax', () => x.amax())
  row('argmax', () => x.argmax())
  row('sum dim0', () => table.sum(0))
  row('sum dim1', () => table.sum(1))
  row('max dim1', () => table.max(1))
  row('softmax dim1', () => table.softmax(1))
  row('cumsum', () => x.cumsum(0))
  row('cumprod', () => x.cumprod(0))
  row('prod', () => x.prod())
  row('sort', () => x.sort())
  row('topk 10', () => x.topk(10))
  row('norm', () => x.norm())
  row('logSumExp', () => x.logSumExp(0))
  row('gather', () => x.gather(0, index))
  row('indexSelect', () => x.indexSelect(0, index))
  row('maskedFill', () => x.maskedFill(mask, 0))
  row('maskedSelect', () => x.maskedSelect(mask))
  row('nonzero', () => mask.nonzero())
  row('cat', () => cat([x, y]))
  row('transpose copy', () => table.T.contiguous())
  row('flip', () => x.flip(0))
  row('roll', () => x.roll(1))
  row('repeatInterleave', () => x.repeatInterleave(2))
  row('clone', () => x.clone())
  row('to float64', () => x.to('float64'))
  row('add_', () => x.add_(1e-9))
  row('clamp', () => x.clamp(0.2, 0.8))
  row('floor', () => x.floor())
  row('remainder', () => x.remainder(0.3))
  row('float64 exp', () => double.exp())
  row('float64 add', () => double.add(double))
  row('int32 add', () => whole.add(whole))
  row('int32 sum', () => whole.sum())
  row('bool any', () => none.any())
  row('tril', () => square.tril())
  row('oneHot', () => oneHot(classes, 10))
  row('einsum ij,ij->i', () => einsum('ij,ij->i', table, table))
  row('rand', () => rand([n]))
  row('randn', () => randn([n]))
  row('randperm', () => randperm(n))
  row('scatterAdd', () => zeros([n]).scatterAdd_(0, index, x))
  row('dropout', () => dropout(x, 0.5))
  row('item', () => x.select(0, 0).itemSync())
}

function productRows(row: Add): void {
  for (const n of [64, 128, 256, 512, 1024]) {
    const [a, b] = [rand([n, n]), rand([n, n])]
    row(`matmul ${n}`, () => a.matmul(b))
  }
  const [a, b] = [rand([64, 64, 64]), rand([64, 64, 64])]
  row('bmm 64x64x64', () => a.matmul(b))
  const [u, v] = [rand([3, 3]), rand([3, 3])]
  row('add 3x3', () => u.add(v))
}

function backward(row: Add, name: string, forward: () => Tensor, leaves: readonly Tensor[]): void {
  const y = forward()
  const gradOutputs = [onesLike(y)]
  row(`${name} backward`, () => grad(y, leaves, { gradOutputs, retainGraph: true }))
}

function both(row: Add, name: string, forward: () => Tensor, leaves: readonly Tensor[]): void {
  row(`${name} forward`, forward)
  backward(row, name, forward, leaves)
  row(`${name} both`, () => {
    for (const x of leaves) x.grad = null
    forward().sum().backward()
  })
}

function gradientRows(n: number, add_: Add): void {
  const [x, y] = [add(rand([n]), 0.1).requiresGrad_(), add(rand([n]), 0.1).requiresGrad_()]
  const mask = rand([n]).gt(0.5)
  const index = randint(0, n, [n], { dtype: 'int32' })
  const table = leaf([1000, n / 1000])
  const row = (name: string, forward: () => Tensor, leaves: readonly Tensor[] = [x]) => backward(add_, `${name} ${n}`, forward, leaves)
  row('mul', () => x.mul(y), [x, y])
  row('div', () => x.div(y), [x, y])
  row('exp', () => x.exp())
  row('log', () => x.log())
  row('tanh', () => x.tanh())
  row('sigmoid', () => x.sigmoid())
  row('gelu', () => x.gelu())
  row('silu', () => x.silu())
  row('relu', () => x.relu())
  row('pow2.5', () => x.pow(2.5))
  row('sin', () => x.sin())
  for (const [name, chain] of chains) row(name, () => chain(x))
  row('where', () => where(mask, x, y), [x, y])
  row('maximum', () => x.maximum(y), [x, y])
  row('sum', () => x.sum())
  row('mean', () => x.mean())
  row('var', () => x.var())
  row('amax', () => x.amax())
  row('sum dim1', () => table.sum(1), [table])
  row('max dim1', () => table.max(1).values, [table])
  row('softmax dim1', () => table.softmax(1), [table])
  row('logSoftmax dim1', () => table.logSoftmax(1), [table])
  row('cumsum', () => x.cumsum(0))
  row('norm', () => x.norm())
  row('logSumExp', () => x.logSumExp(0))
  row('sort', () => x.sort().values)
  row('topk 10', () => x.topk(10).values)
  row('gather', () => x.gather(0, index))
  row('indexSelect', () => x.indexSelect(0, index))
  row('maskedFill', () => x.maskedFill(mask, 0))
  row('cat', () => cat([x, y]), [x, y])
  row('flip', () => x.flip(0))
  row('clamp', () => x.clamp(0.2, 0.8))
  row('dropout', () => dropout(x, 0.5))
  row('expand', () => x.unsqueeze(0).expand([4, n]))
}

function layerRows(row: Add): void {
  const image = leaf([8, 16, 32, 32])
  const conv = new Conv2d(16, 32, 3, { padding: 1 })
  both(row, 'conv2d 8x16x32x32 3x3 32', () => conv.forward(image), [image, ...conv.parameters()])
  const conv1 = new Conv1d(16, 32, 5)
  const line = leaf([8, 16, 256])
  both(row, 'conv1d 8x16x256 k5', () => conv1.forward(line), [line, ...conv1.parameters()])
  const transposed = new ConvTranspose2d(16, 8, 4, { stride: 2, padding: 1 })
  both(row, 'convTranspose2d', () => transposed.forward(image), [image, ...transposed.parameters()])
  both(row, 'maxPool2d', () => maxPool2d(image, 2), [image])
  const batchNorm = new BatchNorm2d(16)
  both(row, 'batchNorm2d', () => batchNorm.forward(image), [image, ...batchNorm.parameters()])
  const layerNorm = new LayerNorm(128)
  const words = leaf([64, 32, 128])
  both(row, 'layerNorm', () => layerNorm.forward(words), [words, ...layerNorm.parameters()])
  const [lstm, gru] = [new LSTM(32, 64), new GRU(32, 64)]
  const series = leaf([32, 16, 32])
  both(row, 'LSTM T32 N16 H64', () => lstm.forward(series)[0], [series, ...lstm.parameters()])
  both(row, 'GRU T32 N16 H64', () => gru.forward(series)[0], [series, ...gru.parameters()])
  const tokens = leaf([8, 64, 64])
  const attention = new MultiheadAttention(64, 4, { batchFirst: true })
  both(row, 'MultiheadAttention N8 L64 E64 h4', () => attention.forward(tokens, tokens, tokens)[0], [tokens, ...attention.parameters()])
  const encoder = new TransformerEncoderLayer(64, 4, { dimFeedforward: 128, dropout: 0, batchFirst: true })
  both(row, 'TransformerEncoderLayer', () => encoder.forward(tokens), [tokens, ...encoder.parameters()])
  const embedding = new Embedding(10_000, 64)
  const ids = randint(0, 10_000, [64, 32], { dtype: 'int32' })
  both(row, 'embedding 10000x64', () => embedding.forward(ids), [...embedding.parameters()])
  const logits = leaf([256, 1000])
  const target = randint(0, 1000, [256], { dtype: 'int32' })
  both(row, 'crossEntropy 256x1000', () => crossEntropy(logits, target), [logits])
  const mlp = new Sequential(new Linear(784, 256), new ReLU(), new Linear(256, 128), new ReLU(), new Linear(128, 10))
  const digits = rand([64, 784])
  both(row, 'mlp 784-256-128-10 batch 64', () => mlp.forward(digits), [...mlp.parameters()])
  const stepped = new Sequential(new Linear(784, 256), new ReLU(), new Linear(256, 128), new ReLU(), new Linear(128, 10))
  stepped.forward(digits).sum().backward()
  const adam = new Adam(stepped.parameters())
  row('Adam step of the mlp', () => adam.step())
  const policy = new Sequential(new Linear(4, 128), new Tanh(), new Linear(128, 2))
  const [observation, action] = [rand([1, 4]), randint(0, 2, [1], { dtype: 'int32' })]
  row('policy 4-128-2 batch 1 both', () => {
    policy.zeroGrad()
    crossEntropy(policy.forward(observation), action).backward()
  })
}

function matrixRows(row: Add): void {
  const x = leaf([300, 300])
  const index = randint(0, 300, [500], { dtype: 'int32' })
  const image = leaf([8, 16, 32, 32])
  both(row, 'prod dim1 300x300', () => x.prod(1), [x])
  both(row, 'cumprod dim1 300x300', () => x.cumprod(1), [x])
  both(row, 'std dim1 300x300', () => x.std(1), [x])
  both(row, 'sort dim1 300x300', () => x.sort(1).values, [x])
  both(row, 'index 500 of 300x300', () => x.index(index), [x])
  both(row, 'pad reflect', () => pad(image, [2, 2, 2, 2], { mode: 'reflect' }), [image])
  both(row, 'where and maximum', () => maximum(where(x.gt(0.5), x, x.mul(2)), x), [x])
}
