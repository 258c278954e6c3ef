/** The model of `scripts/golden/weights.py`, and a file of its weights that is made here. */
import { readFileSync } from 'node:fs'
import { noGrad } from '@postgrad/autograd'
import { type Tensor, tensor } from '@postgrad/tensor'
import { Adam, Embedding, Linear, LSTM, Module, safetensorsBytes, toTorchOptimizerState } from '../index.js'
import { golden, type OptimizerClass, Training } from '../optim/small-net.suite.js'

export const goldenFile = (name: string): URL => new URL(`../../golden/${name}`, import.meta.url)
export const goldenJson = (name: string) => JSON.parse(readFileSync(goldenFile(name), 'utf8'))

export class Model extends Module {
  readonly encoder = new Embedding(6, 3)
  readonly rnn = new LSTM(3, 4, { numLayers: 2 })
  readonly decoder = new Linear(4, 2)

  /** indices [T, N] → [T, N, 2] */
  forward(indices: Tensor): Tensor {
    return this.decoder.forward(this.rnn.forward(this.encoder.forward(indices))[0])
  }

  outputFor(indices: number[][]): number[] {
    return [...noGrad(() => this.forward(tensor(indices, { dtype: 'int32' }))).dataSync()]
  }
}

/** Weights that are the same on every machine: multiples of 1/64. */
export async function writtenHere() {
  const model = new Model()
  let k = 0
  for (const parameter of model.parameters()) {
    const values = Float32Array.from({ length: parameter.numel }, () => (((k++ * 37) % 101) - 50) / 64)
    parameter.detach().copy_(tensor(values).reshape(parameter.shape))
  }
  const metadata = { made: 'by postgrad', format: 'pt' }
  const indices = [
    [5, 0],
    [1, 2],
    [3, 4],
  ]
  const training = trainingOf(golden.start)
  const middle = training.stepped(5)
  const { tensors, metadata: groups } = toTorchOptimizerState(training.optimizer.stateDict())
  return {
    bytes: await safetensorsBytes(model.stateDict(), { metadata }),
    adam: await safetensorsBytes(tensors, { metadata: groups }),
    expected: { metadata, indices, output: model.outputFor(indices), middle, end: training.stepped(5) },
  }
}

/** The small net with the script's Adam, from these weights on. */
export function trainingOf(weights: readonly number[]): Training {
  const groups = [
    { lr: 0.02, amsgrad: true },
    { lr: 0.01, weightDecay: 0.1, betas: [0.8, 0.99] },
  ]
  return new Training('float64', Adam as unknown as OptimizerClass, {}, groups, weights)
}
