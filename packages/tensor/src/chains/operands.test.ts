/** Kernels whose operands are pending: a chain computes them before the kernel begins, since both use the same scratch. */
import { describe, expect, test } from '@jest/globals'
import { Storage } from '../heap/storage.js'
import { compile, device, full, Generator, rand, type Tensor, withDevice } from '../index.js'
import { isPending, threadHeap } from '../internal.js'
import { checkKernel } from '../kernels/kernel.suite.js'
import { isUnsupported, KERNEL_OPS } from '../kernels/table/table.js'
import { type Entry, isOperand } from '../kernels/wasm/placed.fixture.js'
import { Device, kernelsFor } from '../tensor/device.js'
import { DTYPES } from '../values/dtype.js'
import { PLACES, seen, small } from './chains.fixture.js'

/** A step that no code has asked for, of any size. An operation on it becomes a step only from `chainsFrom` elements on. */
function pendingOf(fn: () => Tensor): Tensor {
  let inner: Tensor | null = null
  small(
    compile(() => {
      inner = fn()
    }),
  )
  expect(isPending(inner!)).toBe(true)
  return inner!
}

/** Loops run below 80 elements, and more than 2,048 are staged in chunks. In managed memory a step holds no more than 4,096. */
const SIZES = [79, 80, 100, 2048, 2049, 4000]

const BINARY = ['add', 'sub', 'mul', 'div', 'maximum', 'minimum', 'pow', 'remainder', 'atan2', 'lt', 'eq'] as const
/** As many elements as a result of both has, in a tensor of its own. */
const whole = (a: Tensor, b: Tensor): Tensor => a.expand([Math.max(a.numel, b.numel)]).clone()
type Call = (a: Tensor, b: Tensor) => Tensor
const CALLS: readonly (readonly [string, Call])[] = [
  ...BINARY.map((op) => [op, (a: Tensor, b: Tensor) => a[op](b)] as const),
  ['add_', (a, b) => whole(a, b).add_(b)],
  ['add_ with alpha', (a, b) => whole(a, b).add_(b, 3)],
  ['where', (a, b) => a.gt(3).where(a, b)],
  ['copy_', (a, b) => whole(a, b).copy_(b)],
  ['matmul', (a, b) => (a.numel === 1 || b.numel === 1 ? a.mul(b) : a.reshape([1, -1]).matmul(b.reshape([-1, 1])))],
]

describe.each(Object.keys(PLACES))('in %s', (name) => {
  const place = PLACES[name]!

  test.each(CALLS)('CHAIN-1 %s of a pending operand, or a view of one, and one that is staged: the bits of both computed', (_, call) => {
    const wrong: string[] = []
    for (const n of SIZES) {
      const views: readonly (readonly [string, (y: Tensor) => Tensor])[] = [
        ['whole', (y) => y.narrow(0, 0, n)],
        ['repeated', (y) => y.narrow(0, n - 1, 1)],
      ]
      for (const [view, of] of views) {
        for (const others of [n, 1]) {
          const run = (made: (fn: () => Tensor) => Tensor, isTurned: boolean) => {
            const generator = new Generator(n)
            const [x, other] = [rand([n + 3], { generator }).add(1), rand([others], { generator }).add(2)]
            const y = of(made(() => x.exp().sub(1)))
            return seen([isTurned ? call(y, other) : call(other, y)])
          }
          for (const isTurned of [false, true]) {
            const expected = place(() => run((fn) => fn(), isTurned))
            const found = place(() => run(pendingOf, isTurned))
            if (found[0] !== expected[0]) wrong.push(`${n} elements, ${view}, ${others} of the other, turned ${isTurned}`)
          }
        }
      }
    }
    expect(wrong).toEqual([])
  })

  test('CHAIN-1 gradients of element-wise operations whose operands are pending', () => {
    for (const n of SIZES) {
      const run = (made: (fn: () => Tensor) => Tensor) => {
        const x = rand([n], { generator: new Generator(n) })
        const [g, y, out] = [made(() => x.exp()), made(() => x.mul(2)), full([n], 0)]
        const repeated = full([1], 5).expand([n])
        const { geluBackward } = kernelsFor(x)
        const outputs = [g, repeated].map((grad) => {
          geluBackward.float32(grad, y, out, 0, 0)
          return out.clone()
        })
        return seen(outputs)
      }
      expect([n, place(() => run(pendingOf))]).toEqual([n, place(() => run((fn) => fn()))])
    }
  })
})

test('CHAIN-1 in the heap, with as many elements as a step has without a test', () => {
  const place = PLACES['the heap']!
  const [x, five, seven] = [full([2000, 100], 3), full([1], 5), full([1], 7)].map((each) => place(() => each.clone())) as [
    Tensor,
    Tensor,
    Tensor,
  ]
  for (const op of ['sub', 'div', 'atan2', 'pow', 'remainder'] as const) {
    const calls = [
      () => five.add(seven[op](x).narrow(0, 0, 200)),
      () => full([100], 5).add_(seven[op](x).select(0, 0)),
      () => full([20, 100], 5).add(seven[op](x).narrow(0, 0, 20)),
      () => full([100], 5).add(seven[op](x).select(0, 0)),
    ]
    expect([op, calls.map((call) => place(() => seen([compile(call)()])[0]))]).toEqual([op, calls.map((call) => seen([call()])[0])])
  }
})

/** Operands like these, of which those named by `mask` are pending. To compute one overwrites scratch, as the kernels of a chain do. */
function pendingOperands(args: readonly unknown[], mask: number): unknown[] {
  const storages = new Map<unknown, Storage>()
  for (const { storage, dtype } of args.filter(isOperand)) {
    const array = storage.host!
    if (storages.has(array)) continue
    if (((mask >> storages.size) & 1) === 0) {
      storages.set(array, new Storage(dtype, array))
      continue
    }
    const settle = (): void => {
      const heap = threadHeap()
      new Uint8Array(heap.buffer, heap.scratch(2 ** 18), 2 ** 18).fill(0xa5)
      pending.receive(new Storage(dtype, array))
    }
    const pending = Storage.awaiting(dtype, array.length, { settle, letGo() {} })
    storages.set(array, pending)
  }
  return args.map((arg) => (isOperand(arg) ? { ...arg, storage: storages.get(arg.storage.host)! } : arg))
}

describe('CHAIN-1 every kernel has the results of the oracle where operands are pending', () => {
  const SEED = 20261129
  const { settlingKernels, implementation } = device('wasm')
  const ops = KERNEL_OPS.filter((op) => DTYPES.some((dtype) => !isUnsupported(implementation.kernels[op][dtype])))
  test.each(ops)(`%s (seed ${SEED})`, (op) => {
    for (const dtype of DTYPES) {
      if (isUnsupported(implementation.kernels[op][dtype])) continue
      let calls = 0
      const right = settlingKernels[op][dtype] as unknown as Entry
      const kernel: Entry = (...args) => right(...pendingOperands(args, ++calls * 0x9e37))
      const { checked } = checkKernel(op, dtype, kernel, { seed: SEED, exact: () => false, drawn: 4 })
      expect([checked > 0, calls >= checked]).toEqual([true, true])
    }
  })
})

test('CHAIN-2 a kernel that asks for pending elements in its middle is a bug of ours, and an assertion', () => {
  const { implementation } = device('js')
  const y = pendingOf(() => full([100], 3).mul(2))
  const add = (): void => {
    y.storage.host
  }
  const kernels = { ...implementation.kernels, add: { ...implementation.kernels.add, float32: add } }
  const wrong = new Device('wrong', { ...implementation, kernels })
  const x = full([100], 1)
  expect(() => withDevice(wrong, () => x.add(x))).toThrow('a kernel asks for elements that are pending')
  expect(isPending(y)).toBe(true)
  expect(y.dataSync()[0]).toBe(6)
})
