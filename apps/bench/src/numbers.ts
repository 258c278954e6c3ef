/** Our side of the number rows: computations that one worker does n times. Each returns its seconds, without the time to make the data. */
import {
  add,
  call,
  crossEntropy,
  expose,
  eye,
  matmul,
  mul,
  noGrad,
  onesLike,
  rand,
  randint,
  randn,
  relu,
  softmax,
  type Tensor,
  tanh,
  zeros,
} from 'postgrad'
import { Conv2d, Linear, LSTM, ReLU, Sequential, Tanh } from 'postgrad/nn'
import { conv2d, layerNorm, maxPool2d } from 'postgrad/nn/functional'
import { SGD } from 'postgrad/optim'
// One program on the workers: the calls' part comes with it.
import './program.js'
import { timed } from './timed.js'
// `--trace` asks the workers.
import './trace-totals.js'

/** More than is taken from the shared heap between two collections: the system's first gift of a page costs more than what is measured. */
const TOUCHED_MIB = 300

/** Before anything is measured: pages of the heap that the rows will use. */
export function touchMemory(): void {
  const tensors = Array.from({ length: TOUCHED_MIB }, () => zeros([2 ** 18]))
  for (const x of tensors) x.close()
}

export function products(n: number, size: number): number {
  const [a, b] = [rand([size, size]), rand([size, size])]
  return noGrad(() => timed(n, () => matmul(a, b)))
}

export function softmaxes(n: number, rows: number, columns: number): number {
  const x = randn([rows, columns])
  return timed(n, () => softmax(x, 1))
}

export function sums(n: number, length: number): number {
  const [a, b] = [rand([length]), rand([length])]
  return timed(n, () => add(a, b))
}

export function tanhs(n: number, length: number): number {
  const x = randn([length])
  return timed(n, () => tanh(x))
}

export function layerNorms(n: number, rows: number, columns: number): number {
  const [x, weight, bias] = [randn([rows, columns]), rand([columns]), rand([columns])]
  return timed(n, () => layerNorm(x, [columns], weight, bias))
}

/** 3×3 filters, padding 1, as in the second layer of the CNN below. */
export function convolutions(n: number, images: number, channels: number, out: number, size: number): number {
  const [x, weight] = [randn([images, channels, size, size]), randn([out, channels, 3, 3])]
  return timed(n, () => conv2d(x, weight, null, { padding: 1 }))
}

/** A step of stochastic gradient descent on images of 28×28: two convolutions with pooling, one linear layer, cross entropy. */
export function cnnSteps(n: number, batch: number): number {
  const [first, second, last] = [new Conv2d(1, 16, 3, { padding: 1 }), new Conv2d(16, 32, 3, { padding: 1 }), new Linear(32 * 7 * 7, 10)]
  const halved = (y: Tensor) => maxPool2d(relu(y), 2)
  const model = (x: Tensor) => last.forward(halved(second.forward(halved(first.forward(x)))).flatten(1))
  const optimizer = new SGD(
    [first, second, last].flatMap((layer) => [...layer.parameters()]),
    { lr: 0.01 },
  )
  const [x, target] = [randn([batch, 1, 28, 28]), randint(0, 10, [batch])]
  return timed(n, () => {
    optimizer.zeroGrad()
    crossEntropy(model(x), target).backward()
    optimizer.step()
  })
}

/** A step of stochastic gradient descent: 784-256-128-10, cross entropy. */
export function mlpSteps(n: number, batch: number): number {
  const model = new Sequential(new Linear(784, 256), new ReLU(), new Linear(256, 128), new ReLU(), new Linear(128, 10))
  const optimizer = new SGD(model.parameters(), { lr: 0.01 })
  const [x, target] = [randn([batch, 784]), randint(0, 10, [batch])]
  return timed(n, () => {
    optimizer.zeroGrad()
    crossEntropy(model.forward(x), target).backward()
    optimizer.step()
  })
}

/** Forward and backward of one layer over [steps, batch, width]. */
export function lstmSteps(n: number, steps: number, batch: number, width: number): number {
  const lstm = new LSTM(width, width)
  const x = randn([steps, batch, width])
  return timed(n, () => {
    lstm.zeroGrad()
    lstm.forward(x)[0].sum().backward()
  })
}

/** Forward and backward of a policy of four observations and two actions, one observation at a time. */
export function policySteps(n: number, hidden: number): number {
  const model = new Sequential(new Linear(4, hidden), new Tanh(), new Linear(hidden, 2))
  const [x, action] = [randn([1, 4]), randint(0, 2, [1])]
  return timed(n, () => {
    model.zeroGrad()
    crossEntropy(model.forward(x), action).backward()
  })
}

const TINY: Record<string, (x: Tensor, y: Tensor) => Tensor> = {
  mul: (x, y) => mul(x, y),
  tanh: (x) => tanh(x),
  matmul: (x, y) => matmul(x, y),
  softmax: (x) => softmax(x, 1),
}

/** Forward and backward of a chain of n times one operation on [3, 3]. */
export function tinyChain(n: number, op: string): number {
  // The identity: no product grows; after the first multiplication by element most are 0, which costs the same.
  const y = eye(3).requiresGrad_()
  let x = rand([3, 3], { requiresGrad: true })
  const work = TINY[op]!
  const started = performance.now()
  for (let i = 0; i < n; i++) x = work(x, y)
  x.backward(onesLike(x))
  return (performance.now() - started) / 1000
}

/** A whole pass: forward, the loss, backward, of one multiplication on [3, 3]. */
export function tinyPasses(n: number): number {
  const [x, y, gradient] = [rand([3, 3], { requiresGrad: true }), rand([3, 3]), rand([3, 3])]
  return timed(n, () => {
    x.grad = null
    mul(x, y).backward(gradient)
  })
}

export const same = (x: Tensor) => x

/** A tensor there and back: two ways. */
export async function tensorRoundTrips(n: number, length: number): Promise<number> {
  const x = rand([length])
  const started = performance.now()
  for (let i = 0; i < n; i++) await call('worker1', same, [x])
  return (performance.now() - started) / 1000
}

expose({
  touchMemory,
  products,
  softmaxes,
  layerNorms,
  convolutions,
  cnnSteps,
  sums,
  tanhs,
  mlpSteps,
  lstmSteps,
  policySteps,
  tinyChain,
  tinyPasses,
  same,
  tensorRoundTrips,
})
