/** Which operations are recorded, what one pass over memory computes, and what it writes. */
import { expect, test } from '@jest/globals'
import { compile, full, randn, type Tensor, tensor, withDevice, zeros } from '../index.js'
import { isPending, recording, settle, withHeapFrom } from '../internal.js'
import { passesOf, seen, small, stepsOf } from './chains.fixture.js'

test('CHAIN-5 small tensors, and other devices of the process within one function, are computed as always', () => {
  const f = compile((x: Tensor) => x.mul(2).add(1))
  expect(stepsOf(() => f(zeros([1000])))).toBe(0)
  expect(stepsOf(() => f(zeros([140_000])))).toBe(2)
  const mixed = compile((x: Tensor) => withDevice('js', () => x.mul(2)).add(1))
  expect(small(() => mixed(tensor([1, 2]))).toArray()).toEqual([3, 5])
})

const COLUMNS: readonly (readonly [shape: readonly number[], column: readonly number[]])[] = [
  // Runs for which lanes are called one by one.
  [
    [7, 600],
    [7, 1],
  ],
  [
    [3, 20_001],
    [3, 1],
  ],
  [
    [2, 3, 513],
    [3, 1],
  ],
  [
    [3, 2, 300],
    [3, 1, 1],
  ],
  // Shorter ones, which are laid out in scratch, as whole runs and as parts of them, for each block or once.
  [
    [2, 5000, 1, 4],
    [5000, 1, 1],
  ],
  [
    [5, 511],
    [5, 1],
  ],
  [
    [3001, 7],
    [3001, 1],
  ],
  [
    [9000, 2],
    [9000, 1],
  ],
  [
    [700, 4, 11],
    [4, 1],
  ],
  [
    [3, 1000, 17],
    [1000, 1],
  ],
]

test.each(COLUMNS)('CHAIN-1 of %j, one element for each run: in registers, and where a polynomial or a bool reads it', (shape, column) => {
  for (const inPlace of [(fn: () => void) => withHeapFrom(1, fn), (fn: () => void) => fn()]) {
    inPlace(() => {
      const x = randn([...shape])
      // With many 0 and -0.
      const each = randn([...column])
        .clamp(-1, 0)
        .add(randn([...column]).clamp(0, 1))
        .mul(randn([...column]))
      const same = each.mul(2).add(each.reciprocal())
      const row = randn(shape.slice(-1))
      const fn = () => [
        x.mul(each),
        x.sub(each).mul(same).add(row).relu(),
        each.sub(x).div(same).tanh().mul(each),
        each.gt(0).where(x.add(same), row.mul(x)),
        x.lt(each).to('float32').mul(same),
        x.to('float64').mul(each.to('float64')).add(same.to('float64')),
        x.to('int32').add(each.mul(9).to('int32')).neg(),
      ]
      expect(seen(small(compile(fn)))).toEqual(seen(fn()))
    })
  }
})

test('CHAIN-5 a promise: what fn does before its first await becomes chains', async () => {
  const f = compile(async (x: Tensor) => {
    const y = x.mul(2)
    const wasPending = isPending(y)
    await Promise.resolve()
    const z = x.mul(3)
    return [wasPending, isPending(z), y.add(z).toArray()]
  })
  const first = small(() => f(tensor([1, 2])))
  expect(await first).toEqual([true, false, [5, 10]])
})

test('CHAIN-5 a long chain is cut, and has the same bits', () => {
  const long = (x: Tensor) => {
    let y = x
    for (let i = 0; i < 300; i++) y = i % 3 === 0 ? y.mul(1.01) : i % 3 === 1 ? y.add(x) : y.minimum(y.mul(y))
    return y
  }
  const x = randn([5000])
  expect(small(() => compile(long)(x)).dataSync()).toEqual(long(x).dataSync())
})

test('CHAIN-5 results share a pass when they have steps or large sources in common, up to 96 tensors; others have one each', () => {
  const n = 3000
  withHeapFrom(1, () => {
    const [x, y] = [randn([n]), randn([n])]
    const several = (fn: () => Tensor[]) => passesOf(() => small(() => compile(fn)()))
    expect(several(() => [x.mul(2), x.mul(3), x.add(y)])).toEqual([3])
    expect(several(() => [x.mul(2), y.mul(3), x.add(1)])).toEqual([2, 1])
    expect(several(() => Array.from({ length: 200 }, (_, i) => x.mul(i)))).toEqual([95, 95, 10])
  })
})

test('CHAIN-5 hundreds of results of one function have their values', () => {
  const xs = Array.from({ length: 700 }, (_, i) => full([100], i))
  const ys = small(() => compile(() => xs.map((x) => x.mul(2)))())
  expect(ys.map((y) => y.dataSync()[99])).toEqual(xs.map((_, i) => 2 * i))
})

test.each([
  ['factors of their own', (x: Tensor, ws: Tensor[]) => ws.map((w, i) => x.mul(w).add(ws[(i + 1) % ws.length]!))],
  [
    'a product of all, and its parts',
    (x: Tensor, ws: Tensor[]) => {
      let h = x
      return ws.map((w) => {
        h = h.mul(w).relu().add(w.gt(h).to('float32'))
        return h
      })
    },
  ],
  [
    'sums around polynomials',
    (x: Tensor, ws: Tensor[]) => {
      let h = x
      return ws.map((w) => {
        h = h.mul(w).tanh().add(w)
        return h
      })
    },
  ],
] as const)('CHAIN-1 a pass over many tensors, %s, is cut into units, and has the same bits', (_, fn) => {
  withHeapFrom(1, () => {
    for (const n of [1003, 20_011]) {
      const [x, ws] = [randn([n]), Array.from({ length: 40 }, () => randn([n]))]
      const expected = fn(x, ws).map((y) => y.dataSync())
      let found: Tensor[] = []
      const passes = passesOf(() => {
        found = small(() => compile(fn)(x, ws))
      })
      expect(found.map((y) => y.dataSync())).toEqual(expected)
      expect(passes.reduce((sum, results) => sum + results, 0)).toBe(40)
      expect(passes.length).toBeLessThan(3)
    }
  })
})

test('CHAIN-1 equal numbers are one source: 0 and -0 are two, and so are numbers of different dtypes', () => {
  const x = tensor([1, -1, 0, 3])
  const numbers = [2, 0, -0, 2, Number.NaN, 0.1, -0, Number.POSITIVE_INFINITY, 0.1, 2]
  const fn = () => numbers.flatMap((value) => [x.div(value), x.to('float64').mul(value), x.to('int32').maximum(value)])
  expect(seen(small(compile(fn)))).toEqual(seen(fn()))
})

test('CHAIN-6 what was computed twice, and is read once more, is written: the steps before it are computed no more', () => {
  const x = randn([3000])
  let inner: Tensor | null = null
  const sums: number[] = []
  const passes = passesOf(() =>
    small(() =>
      recording(() => {
        const h = x.sin().exp()
        inner = h
        for (let i = 0; i < 5; i++) sums.push(h.mul(i).sum().dataSync()[0]!)
      }),
    ),
  )
  expect(isPending(inner!)).toBe(false)
  // h with the third product.
  expect(passes.filter((results) => results > 0)).toEqual([1, 1, 2, 1, 1])
  const h = x.sin().exp()
  expect(sums).toEqual([0, 1, 2, 3, 4].map((i) => h.mul(i).sum().dataSync()[0]))
})

test('CHAIN-6 a closed step that others read is written, too, and its elements go back with its last reader', () => {
  withHeapFrom(1, () => {
    const x = randn([3000])
    const ys = small(() =>
      recording(() => {
        const h = x.sin()
        const ys = [1, 2, 3, 4, 5].map((i) => h.mul(i))
        h.close()
        return ys
      }),
    )
    const { heap, block } = x.storage.lease!
    const found = ys.map((y) => {
      const values = y.dataSync()
      return [values, heap.isShared(block)]
    })
    const h = x.sin()
    // From the third on, they read h.
    expect(found).toEqual([1, 2, 3, 4, 5].map((i) => [h.mul(i).dataSync(), i < 3]))
  })
})

test('CHAIN-5 several results of one size are computed in one pass', () => {
  const xs = small(() => recording(() => [0, 1, 2].map((i) => randn([3000]).mul(i))))
  expect(xs.map(isPending)).toEqual([true, true, true])
  settle(xs)
  expect(xs.map(isPending)).toEqual([false, false, false])
})
