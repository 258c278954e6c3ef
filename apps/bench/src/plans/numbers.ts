/** Rows of numbers: kernels against the peak of 128-bit SIMD or a plain copy, small networks against PyTorch on one thread. */
import type { Controller } from 'postgrad'
import * as numbers from '../numbers.js'
import { gpujsMatmul } from '../peers/gpujs.js'
import { elementwise, matmulTiles, policyArithmetic, warmCopy } from '../peers/javascript.js'
import type { TfjsPeer } from '../peers/tfjs.js'
import * as program from '../program.js'
import type { Contestant, RowPlan } from '../row.js'
import { microseconds, milliseconds, type TorchWork, torchOf } from './plan.js'

const MATMUL_SIZES = [64, 128, 256, 512, 1024]
/** From here on the product is asked to reach its share of the peak. */
const MATMUL_AIM_FROM = 128
const MATMUL_AIM = 0.85
/** Floating-point operations of a turn: some 25 ms. */
const TURN_FLOPS = 1e9
const MILLION = 1_000_000
const [MLP_BATCH, MLP_AIM] = [64, 2.2]
/** Multiplications and additions of forward and the two products of backward; the first layer has but one of these. */
const MLP_FLOPS = 2 * MLP_BATCH * (2 * 784 * 256 + 3 * 256 * 128 + 3 * 128 * 10)
const [CONV_IMAGES, CONV_IN, CONV_OUT, CONV_SIZE] = [32, 16, 32, 14]
const CONV_FLOPS = 2 * 9 * CONV_IMAGES * CONV_IN * CONV_OUT * CONV_SIZE * CONV_SIZE
/** The first convolution (28×28, no gradient of the images), the second, and the linear layer. */
const CNN_FLOPS = 2 * 2 * 9 * CONV_IMAGES * 16 * 28 * 28 + 3 * CONV_FLOPS + 3 * 2 * CONV_IMAGES * 32 * 7 * 7 * 10
const [LSTM_STEPS, LSTM_BATCH, LSTM_WIDTH] = [32, 32, 128]
const LSTM_FLOPS = 2 * LSTM_STEPS * LSTM_BATCH * (8 * LSTM_WIDTH * LSTM_WIDTH + 2 * 8 * LSTM_WIDTH * LSTM_WIDTH)
const [POLICY_HIDDEN, POLICY_AIM] = [128, 5]
/** µs beyond the arithmetic. */
const TINY_AIM = 1
const TINY_OPS = ['mul', 'tanh', 'matmul', 'softmax']
const ONE_WAY = [
  ['4 KiB', 1024],
  ['1 MiB', 262_144],
  ['64 MiB', 16_777_216],
] as const
const ONE_WAY_AIM = 1.2

const gigaflops = (flops: number) => (seconds: number, n: number) => (flops * n) / seconds / 1e9

export function numberRows(worker0: Controller, peak: Contestant, tfjs: TfjsPeer | null, withTorch: TorchWork): RowPlan[] {
  /** The time in which the peak does so many operations. */
  const atPeak =
    (flops: number): Contestant =>
    (n) =>
      peak(n * flops)
  return [
    ...MATMUL_SIZES.map((size): RowPlan => {
      const flops = 2 * size ** 3
      return {
        name: `matmul ${size}×${size}`,
        unit: 'GFLOP/s',
        n: Math.max(1, Math.round(TURN_FLOPS / flops)),
        figure: gigaflops(flops),
        higherIsBetter: true,
        ours: (n) => worker0.run(numbers.products, n, size),
        limit: atPeak(flops),
        peers: {
          JavaScript: { run: matmulTiles(size), share: 0.1 },
          'gpu.js': { run: gpujsMatmul(size), share: 0.05 },
          ...peer(tfjs, (peer) => peer.matmul(size)),
          ...withTorch('products', 1, size),
        },
        aim: (limit) => (size < MATMUL_AIM_FROM ? null : MATMUL_AIM * limit),
      }
    }),
    ...millions(worker0, tfjs, withTorch),
    {
      name: `conv2d 3×3 of [${CONV_IMAGES}, ${CONV_IN}, ${CONV_SIZE}, ${CONV_SIZE}] to ${CONV_OUT} channels`,
      unit: 'GFLOP/s',
      n: 10,
      figure: gigaflops(CONV_FLOPS),
      higherIsBetter: true,
      ours: (n) => worker0.run(numbers.convolutions, n, CONV_IMAGES, CONV_IN, CONV_OUT, CONV_SIZE),
      limit: atPeak(CONV_FLOPS),
      peers: {
        ...peer(tfjs, (peer) => peer.conv2d([CONV_IMAGES, CONV_IN, CONV_SIZE, CONV_SIZE], CONV_OUT, 3)),
        ...withTorch('convolutions', 1, CONV_IMAGES, CONV_IN, CONV_OUT, CONV_SIZE),
      },
      aim: () => null,
    },
    {
      name: `CNN of 28×28 images, SGD step, batch ${CONV_IMAGES}`,
      unit: 'ms',
      n: 3,
      figure: milliseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(numbers.cnnSteps, n, CONV_IMAGES),
      limit: atPeak(CNN_FLOPS),
      peers: withTorch('cnn_steps', 1, CONV_IMAGES),
      aim: () => null,
    },
    {
      name: `MLP 784-256-128-10, SGD step, batch ${MLP_BATCH}`,
      unit: 'ms',
      n: 10,
      figure: milliseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(numbers.mlpSteps, n, MLP_BATCH),
      limit: atPeak(MLP_FLOPS),
      peers: withTorch('mlp_steps', 1, MLP_BATCH),
      aim: (_, peers) => times(torchOf(peers), MLP_AIM),
    },
    {
      name: `LSTM ${LSTM_STEPS}×${LSTM_BATCH}×${LSTM_WIDTH}, forward and backward`,
      unit: 'ms',
      n: 5,
      figure: milliseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(numbers.lstmSteps, n, LSTM_STEPS, LSTM_BATCH, LSTM_WIDTH),
      limit: atPeak(LSTM_FLOPS),
      peers: withTorch('lstm_steps', 1, LSTM_STEPS, LSTM_BATCH, LSTM_WIDTH),
      aim: () => null,
    },
    {
      name: `policy 4-${POLICY_HIDDEN}-2, batch 1, forward and backward`,
      unit: 'µs',
      n: 500,
      figure: microseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(numbers.policySteps, n, POLICY_HIDDEN),
      limit: policyArithmetic(POLICY_HIDDEN),
      peers: withTorch('policy_steps', 0.2, POLICY_HIDDEN),
      aim: (_, peers) => times(torchOf(peers), 1 / POLICY_AIM),
    },
    ...TINY_OPS.map(
      (op): RowPlan => ({
        name: `${op} on 3×3 in a chain, forward and backward per op`,
        unit: 'µs',
        n: 2000,
        figure: microseconds,
        higherIsBetter: false,
        ours: (n) => worker0.run(numbers.tinyChain, n, op),
        limit: (n) => worker0.run(program.additions, n),
        peers: withTorch('tiny_chain', 0.5, TINY_OPS.indexOf(op)),
        aim: (limit) => limit + TINY_AIM,
      }),
    ),
    {
      name: 'a whole backward pass over one mul on 3×3',
      unit: 'µs',
      n: 2000,
      figure: microseconds,
      higherIsBetter: false,
      ours: (n) => worker0.run(numbers.tinyPasses, n),
      limit: (n) => worker0.run(program.additions, n),
      peers: withTorch('tiny_passes', 0.1),
      aim: () => null,
    },
    ...ONE_WAY.map(
      ([size, length]): RowPlan => ({
        name: `a tensor of ${size} there and back`,
        unit: 'µs',
        n: 200,
        figure: microseconds,
        higherIsBetter: false,
        ours: (n) => worker0.run(numbers.tensorRoundTrips, n, length),
        limit: (n) => worker0.run(program.roundTrip, n),
        peers: withTorch('tensor_round_trips', length > MILLION ? 0.01 : 0.1, length),
        aim: (limit) => ONE_WAY_AIM * limit,
      }),
    ),
  ]
}

/** Functions of a million elements, whose limit is to copy them. */
function millions(worker0: Controller, tfjs: TfjsPeer | null, withTorch: TorchWork): RowPlan[] {
  const square = [1000, 1000] as const
  const rows: readonly (readonly [name: string, ours: Contestant, torch: RowPlan['peers'], others: RowPlan['peers']])[] = [
    [
      'add 1e6',
      (n) => worker0.run(numbers.sums, n, MILLION),
      withTorch('sums', 1, MILLION),
      { JavaScript: { run: elementwise(MILLION, (x) => x + x) }, ...peer(tfjs, (t) => t.add(MILLION)) },
    ],
    [
      'tanh 1e6',
      (n) => worker0.run(numbers.tanhs, n, MILLION),
      withTorch('tanhs', 1, MILLION),
      { JavaScript: { run: elementwise(MILLION, Math.tanh), share: 0.3 }, ...peer(tfjs, (t) => t.tanh(MILLION)) },
    ],
    [
      'softmax [1000, 1000]',
      (n) => worker0.run(numbers.softmaxes, n, ...square),
      withTorch('softmaxes', 1, ...square),
      peer(tfjs, (t) => t.softmax(square)),
    ],
    ['layerNorm [1000, 1000]', (n) => worker0.run(numbers.layerNorms, n, ...square), withTorch('layer_norms', 1, ...square), {}],
  ]
  return rows.map(([name, ours, torch, others]) => ({
    name,
    unit: 'µs',
    n: 20,
    figure: microseconds,
    higherIsBetter: false,
    ours,
    limit: warmCopy(MILLION),
    peers: { ...others, ...torch },
    aim: () => null,
  }))
}

function peer(tfjs: TfjsPeer | null, run: (tfjs: TfjsPeer) => Contestant): RowPlan['peers'] {
  return tfjs === null ? {} : { [`tfjs-wasm ${tfjs.version}`]: { run: run(tfjs) } }
}

const times = (x: number | null, factor: number): number | null => (x === null ? null : x * factor)
