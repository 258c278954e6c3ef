/** Whole graphs against PyTorch: losses, first and second derivatives; made by `scripts/golden/autograd.py`, where each graph has its twin. */
import { type Tensor, tensor } from '@postgrad/tensor'
import * as F from '../index.js'
import { goldenSuite } from './golden.suite.js'

const ints = (...values: number[]) => tensor(Int32Array.from(values))

const GRAPHS: Readonly<Record<string, (...inputs: Tensor[]) => Tensor>> = {
  design_note: (t1, t2, t4) => t1!.add(t2!).mul(t4!).sum(),
  two_layers: (x, w1, b, w2) =>
    x!
      .matmul(w1!.T)
      .add(b!)
      .tanh()
      .matmul(w2!.T)
      .crossEntropy(ints(0, 1, 1, 0)),
  used_twice: (x) => {
    const y = x!.mul(x!)
    return y
      .exp()
      .mul(y)
      .add(y.sin().div(y.add(1)))
      .sum()
  },
  views: (x) => {
    const y = x!.T.reshape([2, 6]).narrow(1, 1, 3)
    return y
      .permute([1, 0])
      .unsqueeze(1)
      .expand([3, 2, 2])
      .mul(x!.view([-1]).narrow(0, 0, 12).reshape([3, 2, 2]))
      .sum()
  },
  joins: (a, b, c) => {
    const y = F.cat([a!, b!, c!.expand([2, 3])], 0)
    return F.stack([y, y.mul(2)], 1)
      .pow(2)
      .mean()
  },
  layer_norm: (x, gain, bias) => {
    const mean = x!.mean(1, true)
    const variance = x!.sub(mean).pow(2).mean(-1, true)
    return x!.sub(mean).div(variance.add(1e-5).sqrt()).mul(gain!).add(bias!).abs().amax(1).sum()
  },
  attention: (q, k, v) => {
    const scores = q!.matmul(k!.transpose(-2, -1)).div(Math.sqrt(3)).softmax(-1)
    return scores.matmul(v!).sigmoid().log().mean()
  },
  embeds: (table, w) => {
    const rows = table!.embedding(ints(1, 4, 1, 0, 1, 3).view([2, 3])).mean(1)
    return rows.matmul(w!).logSoftmax(1).nllLoss(ints(1, 0), 'sum')
  },
  choices: (a, b) => {
    const y = a!.gt(b!).where(a!.mul(2), b!.sub(a!))
    return y.maximum(a!).mul(y.minimum(b!).clamp(-0.4, 0.6)).add(a!.sub(0.1).relu()).sum()
  },
  vectors: (m, v, batch) => m!.matmul(v!).matmul(batch!).cos().sum().add(batch!.bmm(batch!).mean()).add(v!.matmul(v!)),
  long_chain: (x) => {
    let y = x!
    for (let i = 0; i < 50; i++)
      y = y
        .mul(0.9)
        .add(x!.sin().mul(0.01 * i))
        .tanh()
    return y.sum()
  },
}

goldenSuite('graphs', GRAPHS)
