/** Arguments of a wrong kind: whatever stands in whichever place of whichever operation, it works or is refused in words, never by a TypeError from inside. */
import { expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { isTensor, ones, tensor } from '@postgrad/tensor'
import { decode, goldenCasesByOp } from '@postgrad/tensor/suite'
import { operations } from './functions.js'
import * as F from './index.js'

type Call = (...args: unknown[]) => unknown

const WRONG: Readonly<Record<string, unknown>> = {
  ...{
    undefined,
    null: null,
    string: 'a',
    array: [1, 2],
    strings: ['a'],
    object: {},
    NaN: Number.NaN,
    half: 1.5,
    negative: -100,
    large: 1000,
  },
  ...{ function: () => 1, boolean: true, date: new Date(0), bigint: 3n, typedArray: new Float64Array(2), nested: [[1]], hole: [undefined] },
}

/** What only operations call. */
const SKIPPED =
  /Backward$|^convolution|Planes$|^avgPoolSpread|^layerNormRows|^embeddingRows|^batchNormTraining|^constantPad|^sumToShape|^everyNth|^reverseCumsum/

const cases = [...goldenCasesByOp()].filter(([op]) => !SKIPPED.test(op))

function outcome(call: () => unknown): unknown {
  try {
    return { value: call() }
  } catch (error) {
    return error
  }
}

test.each(cases)('%s takes or refuses arguments of every kind', (op, [first]) => {
  const call = (operations as unknown as Readonly<Record<string, Call>>)[op] ?? (F as unknown as Readonly<Record<string, Call>>)[op]!
  for (const at of first!.args.keys()) {
    for (const [name, wrong] of Object.entries(WRONG)) {
      const args = first!.args.map((arg) => decode(arg, []))
      const wanted = args[at]
      if (wrong === wanted) continue
      args[at] = wrong
      const result = outcome(() => call(...args))
      const where = `${op} with ${name} as argument ${at}`
      const isError = isPostgradError(result)
      if (!isError && !Object.hasOwn(result as object, 'value')) throw new Error(`${where}: ${String(result)}`, { cause: result })
      if (isTensor(wanted) && typeof wrong !== 'number' && wrong !== null && wrong !== undefined && !isError)
        throw new Error(`${where} was taken`)
      if (!isError) continue
      expect(result.message).toMatch(/^\w+: /)
      expect([where, result.message.replace(/got .*/s, '')]).not.toEqual([where, expect.stringMatching(/undefined|\[object/)])
    }
  }
})

const x = ones([2, 3])

test.each<[string, () => unknown]>([
  [
    'matmul: expected (tensor, tensor), got (an array of 1, 2, tensor [2, 3] of float32). Make a tensor of it',
    () => F.matmul([1, 2] as never, x),
  ],
  ['add: expected (tensor or number, tensor or number), got (undefined, tensor [2, 3] of float32)', () => F.add(undefined as never, x)],
  [
    'reshape: expected (tensor, number[]), got (tensor [2, 3] of float32, 2). Write [2, 3]',
    () => (x as never as { reshape: Call }).reshape(2, 3),
  ],
  ['cat: expected (tensor[], number or nothing), got (tensor [2, 3] of float32, tensor', () => F.cat(x as never, x as never)],
  ['cat: expected (tensor[], number or nothing), got (tensor [2, 3] of float32). Put the tensors into an array', () => F.cat(x as never)],
  ['stack: expected (tensor[], number or nothing), got ()', () => F.stack(undefined as never)],
  ['sum: expected (tensor, number or number[] or nothing, boolean or nothing', () => x.sum(0, { keepdim: true } as never)],
  ['relu: expected (tensor), got (a Promise). Await the promise first', () => F.relu(Promise.resolve(x) as never)],
  ['exp_: expected (tensor), got (2)', () => (operations.exp_ as Call)(2)],
  ['detach: expected (tensor), got (null)', () => F.detach(null as never)],
  ['einsum: expected tensors as operands, got number', () => F.einsum('ij', 1 as never)],
  ['tensordot: expected a number of dimensions, or a list of them for each side', () => F.tensordot(x, x, [1, 2] as never)],
])('%s', (message, call) => {
  const error = outcome(call)
  if (!isPostgradError(error, 'INVALID_ARGUMENT')) throw new Error(`expected INVALID_ARGUMENT, got ${String(error)}`)
  expect(error.message).toContain(message)
})

test('the check keeps names, and lets through what may be left out', () => {
  expect(F.matmul.name).toBe('matmul')
  expect(operations.add_.name).toBe('add_')
  expect(F.clamp(tensor([1, 5]), null, 3).toArray()).toEqual([1, 3])
  expect(F.linear(x, x, null).toArray()).toEqual([
    [3, 3],
    [3, 3],
  ])
})
