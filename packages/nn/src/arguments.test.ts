/** Arguments of a wrong kind of modules, initialisations, schedulers and helpers: refused in words, where they would fail inside or take no part in silence. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { ones } from '@postgrad/tensor'
import * as nn from './index.js'

const linear = new nn.Linear(3, 2)
const optimizer = new nn.SGD(linear.parameters(), { lr: 0.1 })

test.each<[string, () => unknown]>([
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
