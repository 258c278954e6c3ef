/** Results do not depend on where tensors are stored: training steps give the same bits under every limit of the shared heap. */
import { beforeEach, expect, test } from '@jest/globals'
import { conv2d, crossEntropy, layerNorm, maxPool2d } from '@postgrad/autograd'
import { withScope } from '@postgrad/base/internal'
import { Generator, randint, randn, type Tensor } from '@postgrad/tensor'
import { threadHeap, withHeapLimit } from '@postgrad/tensor/internal'
import { Adam, Embedding, Linear, LSTM, Module, ReLU, Sequential } from '../index.js'

beforeEach(() => {
  threadHeap()
})

class Mixed extends Module {
  readonly embedding = new Embedding(40, 64)
  readonly rnn = new LSTM(64, 48)
  readonly filters = randn([8, 1, 3, 3]).mul(0.3).requiresGrad_()
  readonly head = new Sequential(new Linear(48, 96), new ReLU(), new Linear(96, 40))

  forward(ids: Tensor): Tensor {
    const [steps, batch] = ids.shape as [number, number]
    const [output] = this.rnn.forward(this.embedding.forward(ids))
    const image = layerNorm(output, [48]).reshape([steps * batch, 1, 6, 8])
    const seen = maxPool2d(conv2d(image, this.filters, null, { padding: 1 }), 2).mean(1)
    return this.head.forward(output.reshape([steps * batch, 48]).add(seen.sum([1, 2]).unsqueeze(1)))
  }
}

/** The bits of the losses and of all parameters after three steps. */
function train(): string[] {
  return withScope({ generator: new Generator(7) }, () => {
    const model = new Mixed()
    const optimizer = new Adam(model.parameters(), { lr: 0.01 })
    const [ids, targets] = [randint(0, 40, [12, 20]), randint(0, 40, [240])]
    const losses = Array.from({ length: 3 }, () => {
      optimizer.zeroGrad()
      const loss = crossEntropy(model.forward(ids), targets)
      loss.backward()
      optimizer.step()
      return loss
    })
    return [...losses, ...model.parameters()].map((x) => Buffer.from(x.detach().dataSync().slice().buffer as ArrayBuffer).toString('hex'))
  })
}

test('limits between nothing and plenty give the same bits', () => {
  const expected = withHeapLimit(0, train)
  for (const kib of [8, 16, 31, 64, 100, 200, 500, 1000, 3000, 10_000, 50_000, Number.POSITIVE_INFINITY])
    expect(withHeapLimit(kib * 1024, train)).toEqual(expected)
})
