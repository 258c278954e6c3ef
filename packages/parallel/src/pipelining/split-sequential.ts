/**
 * Splits a Sequential into stages of as equal costs as neighbouring layers allow: the dearest stage, which sets the pace of a pipeline, costs as little as possible. PyTorch: by hand with
 * `pipeline(…, split_spec)`; torchgpipe's `balance_by_time` and `balance_by_size` measured.
 */
import { backwardInto } from '@postgrad/autograd/internal'
import { withScope } from '@postgrad/base/internal'
import { type Layer, Sequential } from '@postgrad/nn'
import type { Worker } from '@postgrad/rpc'
import { Generator, onesLike, type Tensor } from '@postgrad/tensor'
import { checkOptions, invalidArgument } from '@postgrad/tensor/internal'

/** How `splitSequential` measures the cost of layers: by `costs`, or by `sample` and `clock`. Default: the number of parameters of each layer. */
export interface SplitOptions {
  /** The cost of each layer, in any unit. */
  readonly costs?: readonly number[]
  /** An input of the model. `clock` times the forward and backward of each layer on it. */
  readonly sample?: Tensor
  /** The clock that times layers, such as `currentWorker().clock`. In a simulation computing takes no time, so pass `costs` there. */
  readonly clock?: Pick<Worker['clock'], 'now'>
}

/** The least of so many times: what is left is hardly noise. */
const ROUNDS = 3

/**
 * Splits `model` into `stages` Sequentials of about equal cost, which share its layers. Without options the cost of a layer is the number of its parameters.
 * @throws INVALID_ARGUMENT if an argument is not valid, such as more stages than layers
 * @example
 * const [first, second] = splitSequential(new Sequential(new Linear(2, 8), new ReLU(), new Linear(8, 1)), 2)
 * first!.length // 1
 * second!.length // 2
 */
export function splitSequential(model: Sequential, stages: number, options: SplitOptions = {}): Sequential[] {
  checkOptions('splitSequential', options, ['costs', 'sample', 'clock'])
  if (!(model instanceof Sequential)) throw invalidArgument('splitSequential', 'a Sequential', typeof model)
  if (!Number.isSafeInteger(stages) || stages < 1 || stages > model.length)
    throw invalidArgument('splitSequential', `stages from 1 to ${model.length}, the number of layers`, stages)
  const costs = options.costs ?? (options.sample === undefined ? parametersOf(model) : timesOf(model, options.sample, options.clock))
  if (costs.length !== model.length || ![...costs].every((cost) => cost >= 0))
    throw invalidArgument('splitSequential', `a cost ≥ 0 for each of ${model.length} layers`, `[${costs.join(', ')}]`)
  const ends = boundaries(costs, stages)
  return ends.map((end, i) => new Sequential(...model.layers.slice(ends[i - 1] ?? 0, end)))
}

const parametersOf = (model: Sequential): number[] =>
  model.layers.map((layer) => layer.parameters().reduce((sum, { numel }) => sum + numel, 0))

/** In ms. Gradients go nowhere, and random numbers are drawn from a generator of its own; running statistics move. */
function timesOf(model: Sequential, sample: Tensor, clock: SplitOptions['clock']): number[] {
  if (clock === undefined) throw invalidArgument('splitSequential', 'a clock with a sample', 'none', 'Pass currentWorker().clock.')
  return withScope({ gradEnabled: true, generator: new Generator(0) }, () => {
    let x = sample
    return model.layers.map((layer) => {
      let least = Number.POSITIVE_INFINITY
      for (let round = 0; round <= ROUNDS; round++) {
        const start = clock.now()
        const y = once(layer, x)
        const took = clock.now() - start
        // The first one compiles.
        if (round > 0) least = Math.min(least, took)
        if (round === ROUNDS) x = y
      }
      return least
    })
  })
}

function once(layer: Layer, x: Tensor): Tensor {
  const input = x.detach()
  const y = layer.forward(input.dtype === 'float32' || input.dtype === 'float64' ? input.requiresGrad_() : input)
  if (y.requiresGrad) backwardInto({ accumulate: () => {} }, [y], [onesLike(y)])
  return y.detach()
}

/** Where each stage ends, none empty, so that the largest sum is the smallest possible; of several such, with the earliest ends. */
function boundaries(costs: readonly number[], stages: number): number[] {
  const sums = [0]
  for (const cost of costs) sums.push(sums.at(-1)! + cost)
  /** By stages, then by layers: the largest sum of the best division, and where its last stage begins. */
  let best = sums.map((sum) => ({ worst: sum, ends: [] as number[] }))
  for (let count = 2; count <= stages; count++) {
    best = best.map((_, to) => {
      let found = { worst: Number.POSITIVE_INFINITY, ends: [] as number[] }
      for (let at = count - 1; at < to; at++) {
        const worst = Math.max(best[at]!.worst, sums[to]! - sums[at]!)
        if (worst < found.worst) found = { worst, ends: [...best[at]!.ends, at] }
      }
      return found
    })
  }
  return [...best[costs.length]!.ends, costs.length]
}
