/** Functions made of entries, and entries that do not compile. */
import { afterAll, expect, test } from '@jest/globals'
import { tensor } from '../../index.js'
import { Tensor } from '../../tensor/tensor.js'
import * as functions from '../all.js'
import { composite, entries, type Functional, primitive, rawOperations, type WithInPlace } from './define.js'
import { formula } from './formula.js'

const methodOf = (name: string) => (Tensor.prototype as unknown as Record<string, (...args: unknown[]) => unknown>)[name]

// Test files that follow in this process see the operations of the library alone.
const [known, defined] = [new Set(Object.keys(rawOperations)), entries.length]
afterAll(() => {
  entries.length = defined
  for (const name of Object.keys(rawOperations)) if (!known.has(name)) delete (rawOperations as unknown as Record<string, unknown>)[name]
})

test('an entry becomes a function, a method and an in-place form, each with the check of its arguments', () => {
  const plusTwice: WithInPlace<(x: Tensor, y: Tensor | number) => Tensor> = composite('plusTwice', {
    args: ['tensor', 'operand'],
    inPlace: true,
    of: (ops) => (x, y) => ops.add(ops.add(x, y), y),
  })
  const x = tensor([1, 2])
  expect(plusTwice(x, 3).toArray()).toEqual([7, 8])
  expect(methodOf('plusTwice')!.call(x, x)).toEqual(tensor([3, 6]))
  expect(methodOf('plusTwice_')!.call(x, 1)).toBe(x)
  expect(x.toArray()).toEqual([3, 4])
  expect([plusTwice.name, methodOf('plusTwice_')!.name]).toEqual(['plusTwice', 'plusTwice_'])
  expect(() => plusTwice(x, true as unknown as number)).toThrow(
    'plusTwice: expected (tensor, tensor or number), got (tensor [2] of float32, true)',
  )
  expect(() => methodOf('plusTwice_')!.call(x, 'a')).toThrow('plusTwice_: expected (tensor, tensor or number)')
})

test('each operation is exported under its own name, and no name is given twice', () => {
  for (const [name, fn] of Object.entries(functions)) expect((fn as { name: string }).name).toBe(name)
  const again = (): ((x: Tensor) => Tensor) => primitive('silu', { args: ['tensor'], raw: (x) => x, grad: null })
  expect(again).toThrow('two operations are called silu')
})

test('a functional one is no method, and names its options', () => {
  const scaled: Functional<(x: Tensor, options?: { readonly by?: number }) => Tensor> = composite('scaled', {
    args: ['tensor', 'options?'],
    options: { by: true },
    isFunctional: true,
    of:
      (ops) =>
      (x, { by = 2 } = {}) =>
        ops.mul(x, by),
  })
  expect(scaled(tensor([1]), { by: 3 }).toArray()).toEqual([3])
  expect(methodOf('scaled')).toBeUndefined()
  expect(() => scaled(tensor([1]), { of: 3 } as object)).toThrow('scaled: expected the options by, got of')
})

type One = (x: Tensor) => Tensor
type Two = (x: Tensor, by: number) => Tensor
type Options = (x: Tensor, options?: { a?: number; b?: number }) => Tensor
const raw = (x: Tensor) => x

// Never called: the compiler is the test.
export const refused = () => {
  // @ts-expect-error a number where a tensor is
  const number: One = primitive('number', { args: ['number'], raw, grad: null })
  // @ts-expect-error an argument is missing
  const missing: Two = primitive('missing', { args: ['tensor'], raw, grad: null })
  // @ts-expect-error an option is missing
  const option: Options = primitive('option', { args: ['tensor', 'options?'], options: { a: true }, raw, grad: null })
  // @ts-expect-error options without their names
  const nameless: Options = primitive('nameless', { args: ['tensor', 'options?'], raw, grad: null })
  // @ts-expect-error in place by its type, not by its entry
  const marked: WithInPlace<One> = primitive('marked', { args: ['tensor'], raw, grad: null })
  // @ts-expect-error neither a row nor null: whether it has a gradient
  const rowless: One = primitive('rowless', { args: ['tensor'], raw })
  // @ts-expect-error a method without a check of its arguments
  const unchecked: One = primitive('unchecked', { raw, grad: null })
  // @ts-expect-error a formula that reads what it does not name
  const reads = formula([], (g, s, ops) => ops.mul(g, s.result))
  return [number, missing, option, nameless, marked, rowless, unchecked, reads]
}

// Never called: a program may put any function of the signature in the place of an operation.
export const replaced = () => {
  let activation = functions.relu
  activation = functions.gelu
  activation = (x) => x.mul(2)
  const layer = (x: Tensor, f = functions.relu) => f(x)
  const train = (x: Tensor, loss = functions.mseLoss) => loss(x, x)
  const named: Record<string, typeof functions.relu> = { relu: functions.relu, gelu: functions.gelu }
  const own: typeof functions.mseLoss = (a, b) => a.sub(b)
  return [activation, layer(tensor(1), (x) => x), train(tensor(1), (a, b) => a.sub(b)), named, own]
}
