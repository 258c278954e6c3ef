/** Large parameters are stepped in pieces: this changes no bit, and no memory of a step remains. */
import { expect, test } from '@jest/globals'
import { type Tensor, tensor, withDevice } from '@postgrad/tensor'
import { withHeapLimit } from '@postgrad/tensor/internal'
import { Adagrad, Adam, AdamW, NAdam, RAdam, RMSprop, SGD } from '../index.js'
import type { Optimizer } from './optimizer.js'

/** More than two pieces, and a rest; cut into parts that are too small for pieces. */
const LENGTH = 20_011
const PART = 1_000

const OPTIMIZERS: Readonly<Record<string, (params: Tensor[]) => Optimizer>> = {
  SGD: (p) => new SGD(p, { lr: 0.1, weightDecay: 0.01, maximize: true }),
  'SGD with Nesterov': (p) => new SGD(p, { lr: 0.1, momentum: 0.9, nesterov: true, weightDecay: 0.01 }),
  Adam: (p) => new Adam(p, { weightDecay: 0.01 }),
  'Adam with amsgrad': (p) => new Adam(p, { amsgrad: true, maximize: true }),
  AdamW: (p) => new AdamW(p),
  NAdam: (p) => new NAdam(p, { weightDecay: 0.01 }),
  RAdam: (p) => new RAdam(p),
  RMSprop: (p) => new RMSprop(p, { centered: true, momentum: 0.9 }),
  Adagrad: (p) => new Adagrad(p, { lrDecay: 0.1 }),
}

const values = (salt: number) => Float32Array.from({ length: LENGTH }, (_, i) => Math.sin(i * 1.7 + salt))
const parts = (x: Float32Array) => Array.from({ length: Math.ceil(LENGTH / PART) }, (_, i) => x.slice(i * PART, (i + 1) * PART))

/** All elements, for a comparison that does not take seconds. */
const bytesOf = (tensors: readonly Tensor[]) => Buffer.concat(tensors.map((t) => new Uint8Array(Float32Array.from(t.dataSync()).buffer)))

/** The parameter after five steps, in as many tensors as `cut` makes. */
function trained(make: (params: Tensor[]) => Optimizer, cut: (x: Float32Array) => Float32Array[]): Buffer {
  const params = cut(values(0)).map((x) => tensor(x).requiresGrad_())
  const optimizer = make(params)
  for (let step = 1; step <= 5; step++) {
    const grads = cut(values(step)).map((x) => tensor(x))
    optimizer.step(new Map(params.map((p, i) => [p, grads[i]!])))
    // Not written to: a step may not touch what it is given.
    expect(bytesOf(grads).equals(bytesOf([tensor(values(step))]))).toBe(true)
  }
  return bytesOf(params)
}

test.each(Object.entries(OPTIMIZERS))('%s: a parameter in pieces has the bits of its parts as parameters', (_, make) => {
  const whole = trained(make, (x) => [x])
  expect(whole.equals(trained(make, parts))).toBe(true)
  expect(withHeapLimit(Number.POSITIVE_INFINITY, () => trained(make, (x) => [x])).equals(whole)).toBe(true)
})

test.each(Object.entries(OPTIMIZERS))('%s: a parameter that is not dense, on another device', (_, make) => {
  const step = () => {
    const p = tensor(values(0).slice(0, 20_000)).reshape([100, 200]).T.detach().requiresGrad_()
    const grad = tensor(values(1).slice(0, 20_000)).reshape([200, 100])
    const optimizer = make([p])
    optimizer.step(new Map([[p, grad]]))
    optimizer.step(new Map([[p, grad]]))
    return bytesOf([p])
  }
  expect(withDevice('js', step).equals(step())).toBe(true)
})
