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
type Row = readonly [name: string, work: Work]
type Rows = Generator<Row, void>

const LARGE = 1_000_000
export const SIZES = [1000, LARGE] as const

/** One after the other: a row's tensors are made when it is asked for, since all of them together are more than the heap takes within a turn. */
export function* operationRows(): Rows {
  for (const n of SIZES) for (const [name, work] of plainRows(n)) yield [`${name} ${n}`, () => noGrad(work)]
  for (const [name, work] of productRows()) yield [name, () => noGrad(work)]
  for (const n of SIZES) yield* gradientRows(n)
  yield* layerRows()
  yield* matrixRows()
}

/** Chains of cheap operations, and of a polynomial among them; `compile` computes them in one pass. */
const CHAINS: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  'chain of 8': (x) => x.mul(2).add(1).mul(x).relu().sub(x).abs().add(3).div(x),
  'gelu by hand': (x) => x.mul(x).mul(x).mul(0.044715).add(x).mul(0.7978845608).tanh().add(1).mul(x).mul(0.5),
}
const chains = Object.entries(CHAINS).flatMap(([name, chain]) => [[name, chain] as const, [`${name}, compiled`, compile(chain)] as const])

const leaf = (shape: readonly number[]) => rand(shape, { requiresGrad: true })

function* plainRows(n: number): Rows {
  const [x, y] = [add(rand([n]), 0.1), add(rand([n]), 0.1)]
  const mask = rand([n]).gt(0.5)
  const table = rand([1000, n / 1000])
  const index = randint(0, n, [n], { dtype: 'int32' })
  const [double, whole, none] = [x.to('float64'), x.mul(100).to('int32'), zeros([n], { dtype: 'bool' })]
  const side = Math.floor(n ** 0.5)
  const square = rand([side, side])
  const classes = randint(0, 10, [n / 10], { dtype: 'int32' })
  yield ['add', () => x.add(y)]
  yield ['mul', () => x.mul(y)]
  yield ['div', () => x.div(y)]
  yield ['exp', () => x.exp()]
  yield ['log', () => x.log()]
  yield ['tanh', () => x.tanh()]
  yield ['sigmoid', () => x.sigmoid()]
  yield ['gelu', () => x.gelu()]
  yield ['pow2.5', () => x.pow(2.5)]
  yield ['sin', () => x.sin()]
  for (const [name, chain] of chains) yield [name, () => chain(x)]
  yield ['where', () => where(mask, x, y)]
  yield ['gt', () => x.gt(y)]
  yield ['sum', () => x.sum()]
  yield ['mean', () => x.mean()]
  yield ['var', () => x.var()]
  yield ['amax', () => x.amax()]
  yield ['argmax', () => x.argmax()]
  yield ['sum dim0', () => table.sum(0)]
  yield ['sum dim1', () => table.sum(1)]
  yield ['max dim1', () => table.max(1)]
  yield ['softmax dim1', () => table.softmax(1)]
  yield ['cumsum', () => x.cumsum(0)]
  yield ['cumprod', () => x.cumprod(0)]
  yield ['prod', () => x.prod()]
  yield ['sort', () => x.sort()]
  yield ['topk 10', () => x.topk(10)]
  yield ['norm', () => x.norm()]
  yield ['logSumExp', () => x.logSumExp(0)]
  yield ['gather', () => x.gather(0, index)]
  yield ['indexSelect', () => x.indexSelect(0, index)]
  yield ['maskedFill', () => x.maskedFill(mask, 0)]
  yield ['maskedSelect', () => x.maskedSelect(mask)]
  yield ['nonzero', () => mask.nonzero()]
  yield ['cat', () => cat([x, y])]
  yield ['transpose copy', () => table.T.contiguous()]
  yield ['flip', () => x.flip(0)]
  yield ['roll', () => x.roll(1)]
  yield ['repeatInterleave', () => x.repeatInterleave(2)]
  yield ['clone', () => x.clone()]
  yield ['to float64', () => x.to('float64')]
  yield ['add_', () => x.add_(1e-9)]
  yield ['clamp', () => x.clamp(0.2, 0.8)]
  yield ['floor', () => x.floor()]
  yield ['remainder', () => x.remainder(0.3)]
  yield ['float64 exp', () => double.exp()]
  yield ['float64 add', () => double.add(double)]
  yield ['int32 add', () => whole.add(whole)]
  yield ['int32 sum', () => whole.sum()]
  yield ['bool any', () => none.any()]
  yield ['tril', () => square.tril()]
  yield ['oneHot', () => oneHot(classes, 10)]
  yield ['einsum ij,ij->i', () => einsum('ij,ij->i', table, table)]
  yield ['rand', () => rand([n])]
  yield ['randn', () => randn([n])]
  yield ['randperm', () => randperm(n)]
  yield ['scatterAdd', () => zeros([n]).scatterAdd_(0, index, x)]
  yield ['dropout', () => dropout(x, 0.5)]
  yield ['item', () => x.select(0, 0).itemSync()]
}

function* productRows(): Rows {
  for (const n of [64, 128, 256, 512, 1024]) {
    const [a, b] = [rand([n, n]), rand([n, n])]
    yield [`matmul ${n}`, () => a.matmul(b)]
  }
  const [a, b] = [rand([64, 64, 64]), rand([64, 64, 64])]
  yield ['bmm 64x64x64', () => a.matmul(b)]
  const [u, v] = [rand([3, 3]), rand([3, 3])]
  yield ['add 3x3', () => u.add(v)]
}

function backward(name: string, forward: () => Tensor, leaves: readonly Tensor[]): Row {
  const y = forward()
  const gradOutputs = [onesLike(y)]
  return [`${name} backward`, () => grad(y, leaves, { gradOutputs, retainGraph: true })]
}

function* both(name: string, forward: () => Tensor, leaves: readonly Tensor[]): Rows {
  yield [`${name} forward`, forward]
  yield backward(name, forward, leaves)
  const step = () => {
    for (const x of leaves) x.grad = null
    forward().sum().backward()
  }
  yield [`${name} both`, step]
}

function* gradientRows(n: number): Rows {
  const [x, y] = [add(rand([n]), 0.1).requiresGrad_(), add(rand([n]), 0.1).requiresGrad_()]
  const mask = rand([n]).gt(0.5)
  const index = randint(0, n, [n], { dtype: 'int32' })
  const table = leaf([1000, n / 1000])
  const row = (name: string, forward: () => Tensor, leaves: readonly Tensor[] = [x]) => backward(`${name} ${n}`, forward, leaves)
  yield row('mul', () => x.mul(y), [x, y])
  yield row('div', () => x.div(y), [x, y])
  yield row('exp', () => x.exp())
  yield row('log', () => x.log())
  yield row('tanh', () => x.tanh())
  yield row('sigmoid', () => x.sigmoid())
  yield row('gelu', () => x.gelu())
  yield row('silu', () => x.silu())
  yield row('relu', () => x.relu())
  yield row('pow2.5', () => x.pow(2.5))
  yield row('sin', () => x.sin())
  for (const [name, chain] of chains) yield row(name, () => chain(x))
  yield row('where', () => where(mask, x, y), [x, y])
  yield row('maximum', () => x.maximum(y), [x, y])
  yield row('sum', () => x.sum())
  yield row('mean', () => x.mean())
  yield row('var', () => x.var())
  yield row('amax', () => x.amax())
  yield row('sum dim1', () => table.sum(1), [table])
  yield row('max dim1', () => table.max(1).values, [table])
  yield row('softmax dim1', () => table.softmax(1), [table])
  yield row('logSoftmax dim1', () => table.logSoftmax(1), [table])
  yield row('cumsum', () => x.cumsum(0))
  yield row('norm', () => x.norm())
  yield row('logSumExp', () => x.logSumExp(0))
  yield row('sort', () => x.sort().values)
  yield row('topk 10', () => x.topk(10).values)
  yield row('gather', () => x.gather(0, index))
  yield row('indexSelect', () => x.indexSelect(0, index))
  yield row('maskedFill', () => x.maskedFill(mask, 0))
  yield row('cat', () => cat([x, y]), [x, y])
  yield row('flip', () => x.flip(0))
  yield row('clamp', () => x.clamp(0.2, 0.8))
  yield row('dropout', () => dropout(x, 0.5))
  yield row('expand', () => x.unsqueeze(0).expand([4, n]))
}

function* layerRows(): Rows {
  const image = leaf([8, 16, 32, 32])
  const conv = new Conv2d(16, 32, 3, { padding: 1 })
  yield* both('conv2d 8x16x32x32 3x3 32', () => conv.forward(image), [image, ...conv.parameters()])
  const conv1 = new Conv1d(16, 32, 5)
  const line = leaf([8, 16, 256])
  yield* both('conv1d 8x16x256 k5', () => conv1.forward(line), [line, ...conv1.parameters()])
  const transposed = new ConvTranspose2d(16, 8, 4, { stride: 2, padding: 1 })
  yield* both('convTranspose2d', () => transposed.forward(image), [image, ...transposed.parameters()])
  yield* both('maxPool2d', () => maxPool2d(image, 2), [image])
  const batchNorm = new BatchNorm2d(16)
  yield* both('batchNorm2d', () => batchNorm.forward(image), [image, ...batchNorm.parameters()])
  const layerNorm = new LayerNorm(128)
  const words = leaf([64, 32, 128])
  yield* both('layerNorm', () => layerNorm.forward(words), [words, ...layerNorm.parameters()])
  const [lstm, gru] = [new LSTM(32, 64), new GRU(32, 64)]
  const series = leaf([32, 16, 32])
  yield* both('LSTM T32 N16 H64', () => lstm.forward(series)[0], [series, ...lstm.parameters()])
  yield* both('GRU T32 N16 H64', () => gru.forward(series)[0], [series, ...gru.parameters()])
  const tokens = leaf([8, 64, 64])
  const attention = new MultiheadAttention(64, 4, { batchFirst: true })
  yield* both('MultiheadAttention N8 L64 E64 h4', () => attention.forward(tokens, tokens, tokens)[0], [tokens, ...attention.parameters()])
  const encoder = new TransformerEncoderLayer(64, 4, { dimFeedforward: 128, dropout: 0, batchFirst: true })
  yield* both('TransformerEncoderLayer', () => encoder.forward(tokens), [tokens, ...encoder.parameters()])
  const embedding = new Embedding(10_000, 64)
  const ids = randint(0, 10_000, [64, 32], { dtype: 'int32' })
  yield* both('embedding 10000x64', () => embedding.forward(ids), [...embedding.parameters()])
  const logits = leaf([256, 1000])
  const target = randint(0, 1000, [256], { dtype: 'int32' })
  yield* both('crossEntropy 256x1000', () => crossEntropy(logits, target), [logits])
  const mlp = new Sequential(new Linear(784, 256), new ReLU(), new Linear(256, 128), new ReLU(), new Linear(128, 10))
  const digits = rand([64, 784])
  yield* both('mlp 784-256-128-10 batch 64', () => mlp.forward(digits), [...mlp.parameters()])
  const stepped = new Sequential(new Linear(784, 256), new ReLU(), new Linear(256, 128), new ReLU(), new Linear(128, 10))
  stepped.forward(digits).sum().backward()
  const adam = new Adam(stepped.parameters())
  yield ['Adam step of the mlp', () => adam.step()]
  const policy = new Sequential(new Linear(4, 128), new Tanh(), new Linear(128, 2))
  const [observation, action] = [rand([1, 4]), randint(0, 2, [1], { dtype: 'int32' })]
  const pass = () => {
    policy.zeroGrad()
    crossEntropy(policy.forward(observation), action).backward()
  }
  yield ['policy 4-128-2 batch 1 both', pass]
}

function* matrixRows(): Rows {
  const x = leaf([300, 300])
  const index = randint(0, 300, [500], { dtype: 'int32' })
  const image = leaf([8, 16, 32, 32])
  yield* both('prod dim1 300x300', () => x.prod(1), [x])
  yield* both('cumprod dim1 300x300', () => x.cumprod(1), [x])
  yield* both('std dim1 300x300', () => x.std(1), [x])
  yield* both('sort dim1 300x300', () => x.sort(1).values, [x])
  yield* both('index 500 of 300x300', () => x.index(index), [x])
  yield* both('pad reflect', () => pad(image, [2, 2, 2, 2], { mode: 'reflect' }), [image])
  yield* both('where and maximum', () => maximum(where(x.gt(0.5), x, x.mul(2)), x), [x])
}
