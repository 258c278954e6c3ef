/** Modules, initialisations, schedulers and helpers refuse wrong arguments, which would otherwise fail deep inside or be ignored silently. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { ones } from '@postgrad/tensor'
import * as nn from '../index.js'

const linear = new nn.Linear(3, 2)
/** Of a module that is awaited. */
const promise = Promise.resolve(ones([2, 3])) as never
const optimizer = new nn.SGD(linear.parameters(), { lr: 0.1 })

test.each<[string, () => unknown]>([
  ['Linear: expected an object with options (bias, dtype), got false', () => new nn.Linear(3, 2, false as never)],
  ['Linear: expected the options bias, dtype, got biass', () => new nn.Linear(3, 2, { biass: false } as never)],
  ["Linear: expected an integer inFeatures ≥ 0, got '3'", () => new nn.Linear('3' as never, 2)],
  ['Conv2d: expected an object with options (stride, ', () => new nn.Conv2d(1, 1, 3, 2 as never)],
  ['ConvTranspose1d: expected the options stride, dilation', () => new nn.ConvTranspose1d(1, 1, 3, { output_padding: 1 } as never)],
  ['LSTM: expected the options numLayers, bias', () => new nn.LSTM(3, 4, { num_layers: 2 } as never)],
  ['RNN: expected the options numLayers, bias', () => new nn.RNN(3, 4, { batch_first: true } as never)],
  ['GRUCell: expected the options bias, dtype, got bais', () => new nn.GRUCell(3, 4, { bais: false } as never)],
  ['MaxPool2d: expected an object with options (stride, padding, ceilMode, dilation), got 2', () => new nn.MaxPool2d(3, 2 as never)],
  ['AvgPool1d: expected the options stride, padding', () => new nn.AvgPool1d(3, { strides: 2 } as never)],
  ['BatchNorm1d: expected the options eps, momentum', () => new nn.BatchNorm1d(3, { track_running_stats: false } as never)],
  ["BatchNorm1d: expected a number ≥ 0 as eps, got 'x'", () => new nn.BatchNorm1d(3, { eps: 'x' as never })],
  ['BatchNorm2d: expected a number ≥ 0 as eps, got NaN', () => new nn.BatchNorm2d(3, { eps: Number.NaN })],
  ["BatchNorm1d: expected a number or null as momentum, got '0'", () => new nn.BatchNorm1d(3, { momentum: '0' as never })],
  ['BatchNorm1d: expected a tensor as the input, got undefined', () => new nn.BatchNorm1d(3).forward(undefined as never)],
  ['BatchNorm1d: expected a tensor as the input, got an array', () => new nn.BatchNorm1d(3).forward([[1, 2, 3]] as never)],
  ['BatchNorm2d: expected a tensor as the input, got a Promise. Await the', () => new nn.BatchNorm2d(3).forward(promise)],
  ['relu: expected (tensor), got (a Promise). Await the promise first', () => new nn.ReLU().forward(promise)],
  ['flatten: expected (tensor, number or nothing, number or nothing), got (a Promise', () => new nn.Flatten().forward(promise)],
  ['softmax: expected (tensor, number), got (a Promise', () => new nn.Softmax(1).forward(promise)],
  ['elu: expected (tensor, number or nothing), got (a Promise', () => new nn.SELU().forward(promise)],
  ['LayerNorm: expected an object with options (eps', () => new nn.LayerNorm(3, 1e-6 as never)],
  ['GroupNorm: expected the options eps, affine, dtype, got eeps', () => new nn.GroupNorm(1, 2, { eeps: 1 } as never)],
  ['InstanceNorm1d: expected an object with options', () => new nn.InstanceNorm1d(2, null as never)],
  ['Embedding: expected the options paddingIdx, sparse, dtype, got padding_idx', () => new nn.Embedding(3, 2, { padding_idx: 0 } as never)],
  ['MultiheadAttention: expected the options dropout', () => new nn.MultiheadAttention(4, 2, { batch_first: true } as never)],
  ['TransformerEncoderLayer: expected the options', () => new nn.TransformerEncoderLayer(4, 2, { dim_feedforward: 3 } as never)],
  ['MSELoss: expected the options reduction, got reductoin', () => new nn.MSELoss({ reductoin: 'sum' } as never)],
  ['L1Loss: expected an object with options (reduction), got null', () => new nn.L1Loss(null as never)],
  ['SmoothL1Loss: expected the options reduction, beta, got delta', () => new nn.SmoothL1Loss({ delta: 1 } as never)],
  ['HuberLoss: expected the options reduction, delta, got beta', () => new nn.HuberLoss({ beta: 1 } as never)],
  ['BCELoss: expected the options reduction, weight, got size_average', () => new nn.BCELoss({ size_average: true } as never)],
  ['BCEWithLogitsLoss: expected the options reduction, weight, posWeight', () => new nn.BCEWithLogitsLoss({ pos_weight: null } as never)],
  ['NLLLoss: expected the options reduction, weight, ignoreIndex', () => new nn.NLLLoss({ ignore_index: 0 } as never)],
  ['CrossEntropyLoss: expected an object with options', () => new nn.CrossEntropyLoss(ones([3]) as never)],
  ['KLDivLoss: expected the options reduction, logTarget', () => new nn.KLDivLoss({ log_target: true } as never)],
  ['GaussianNLLLoss: expected the options reduction, full, eps', () => new nn.GaussianNLLLoss({ epsilon: 1 } as never)],
  ['GELU: expected the options approximate, got approx', () => new nn.GELU({ approx: 'tanh' } as never)],
  ['Softplus: expected an object with options (beta, threshold), got 2', () => new nn.Softplus(2 as never)],
  ['PReLU: expected the options numParameters, init, dtype', () => new nn.PReLU({ num_parameters: 2 } as never)],
  ['RNN: expected an object with options (numLayers', () => new nn.RNN(3, 4, null as never)],
  ['RNNCell: expected an object with options (', () => new nn.RNNCell(3, 4, null as never)],
  ['SGD: expected parameters, or groups of them, got undefined', () => new (nn.SGD as unknown as new () => unknown)()],
  ['SGD: expected lr ≥ 0, got undefined', () => new nn.SGD(linear.parameters(), undefined as never)],
  ['SGD: expected an object of settings, such as { lr: 0.01 }, got 0.1', () => new nn.SGD(linear.parameters(), 0.1 as never)],
  ["SGD: expected lr ≥ 0, got '0.1'", () => new nn.SGD(linear.parameters(), { lr: '0.1' as never })],
  ['linear: expected (tensor, tensor, tensor or null or nothing), got (undefined', () => linear.forward(undefined as never)],
  ['Sequential: expected modules, got an array of a Linear', () => new nn.Sequential([linear] as never)],
  ['ModuleList: expected modules, got tensor [2] of float32', () => new nn.ModuleList([ones([2])] as never)],
  ['ModuleList: expected an array as its modules, got a Linear', () => new nn.ModuleList(linear as never)],
  ['LSTM: expected a tensor as the input, got undefined', () => new nn.LSTM(3, 4).forward(undefined as never)],
  ['LSTM: expected an array of tensors as the states, got tensor', () => new nn.LSTM(3, 4).forward(ones([2, 1, 3]), ones([2]) as never)],
  ['LayerNorm: expected an array as the shape to normalise', () => new nn.LayerNorm(undefined as never)],
  ['parameter: expected a tensor as its values, got 3', () => nn.parameter(3 as never)],
  ['registerForwardHook: expected a function as the hook, got undefined', () => linear.registerForwardHook(undefined as never)],
  ['apply: expected a function', () => linear.apply(undefined as never)],
  ['kaimingNormal_: expected a tensor as what to fill, got 3', () => nn.init.kaimingNormal_(3 as never)],
  ['zeros_: expected a tensor as what to fill, got undefined', () => nn.init.zeros_(undefined as never)],
  ['StepLR: expected an object with its settings, got undefined', () => new nn.StepLR(optimizer, undefined as never)],
  ['MultiStepLR: expected an array as milestones, got undefined', () => new nn.MultiStepLR(optimizer, {} as never)],
  ['parametersToVector: expected an array as parameters, got undefined', () => nn.parametersToVector(undefined as never)],
])('%s', (message, call) => {
  let caught: unknown
  try {
    call()
  } catch (error) {
    caught = error
  }
  if (!isPostgradError(caught, 'INVALID_ARGUMENT')) throw new Error(`expected INVALID_ARGUMENT, got ${String(caught)}`)
  expect(caught.message).toContain(message)
})
