/**
 * The blas backend: the kernel suite where this machine has a BLAS library, and what it says where there is none. Machines without one run the tests of the
 * opening alone.
 */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { Heap } from '../../heap/heap.js'
import { threadHeap } from '../../heap/thread-heap.js'
import { opsSuite } from '../../ops/ops.suite.js'
import { eye, tensor, zeros } from '../../tensor/create.js'
import { type DeviceSpec, device, withDevice } from '../../tensor/device.js'
import type { Tensor } from '../../tensor/tensor.js'
import { numelOf } from '../../values/shape.js'
import type { Conv, Matmul } from '../table/operands.js'
import { createWasmBackend } from '../wasm/backend.js'
import { helperCounts, setComputeThreads, withThreadLimits } from '../wasm/threads/compute-threads.js'
import { createBlasBackend } from './backend.js'
import { openblasCore } from './libraries.js'
import { type Blas, open, openBlas } from './open.js'

function blasHere(): Blas | null {
  try {
    return openBlas()
  } catch (error) {
    if (isPostgradError(error, 'BLAS_NOT_FOUND')) return null
    throw error
  }
}

const blas = blasHere()
const describeHere = blas === null ? describe.skip : describe

/** As koffi: files by name, each with the functions that it has. */
function koffiWith(files: Readonly<Record<string, readonly string[]>>, calls: string[] = []) {
  return {
    load(file: string) {
      const names = files[file]
      if (names === undefined) throw new Error(`${file}: no such file`)
      return {
        func(declaration: string) {
          const name = /(\w+)\(/.exec(declaration)![1]!
          if (!names.includes(name)) throw new Error(`no ${name}`)
          return (...args: unknown[]) => {
            calls.push(`${name}(${args.join(', ')})`)
            return name.includes('corename') ? 'SkylakeX' : 0
          }
        },
      }
    },
    address: () => 64n,
  }
}

const OPENBLAS = ['cblas_sgemm', 'cblas_dgemm', 'openblas_set_num_threads', 'openblas_get_corename']
const LIBC = { 'libc.so.6': ['setenv'], 'libSystem.dylib': ['setenv'] }

describe('opening', () => {
  test('the first library that the system has; the processor that it took; its number of threads, which others may have set, stays', () => {
    const calls: string[] = []
    const found = open(koffiWith({ ...LIBC, 'libopenblas.so': OPENBLAS }, calls), undefined, 'linux')
    expect(found).toMatchObject({ library: 'OpenBLAS', file: 'libopenblas.so', kernels: 'SkylakeX' })
    expect(calls.filter((call) => call.includes('threads'))).toEqual([])
  })

  test('a library without the products is left out', () => {
    const found = open(
      koffiWith({ ...LIBC, 'libopenblas.so.0': [], 'libblis.so.4': ['cblas_sgemm', 'cblas_dgemm', 'bli_thread_set_num_threads'] }),
      undefined,
      'linux',
    )
    expect(found).toMatchObject({ library: 'BLIS', kernels: null })
  })

  test('the file that the user names, of whatever name', () => {
    const file = '/opt/lib/libblas.so'
    expect(open(koffiWith({ ...LIBC, [file]: ['cblas_sgemm', 'cblas_dgemm'] }), file, 'linux')).toMatchObject({ library: 'BLAS', file })
  })

  test.each(['linux', 'darwin', 'win32'])('none on %s: an error says what was tried and what to do', (platform) => {
    expect(() => open(koffiWith(LIBC), undefined, platform)).toThrow(/none of .*openblas.* can be loaded.*POSTGRAD_BLAS/s)
  })

  test('a file that is not there', () => {
    expect(() => open(koffiWith(LIBC), '/nowhere/libopenblas.so', 'linux')).toThrow(/none of \/nowhere\/libopenblas\.so can be loaded/)
  })
})

test.each([
  ['fma avx avx2 avx512f avx512dq avx512cd avx512bw avx512vl', 'SKYLAKEX'],
  // Knights Landing has AVX-512 without these.
  ['fma avx avx2 avx512f avx512cd avx512er avx512pf', 'HASWELL'],
  ['fma avx avx2', 'HASWELL'],
  ['avx avx2', null],
  ['', null],
])('the core that fits: %s', (flags, core) => {
  expect(openblasCore(new Set(flags.split(' ')))).toBe(core)
})

/** The sizes of a test; a dilation or a dtype where it is not 1 or float32. */
interface Convolution extends Readonly<Record<'n' | 'c' | 'h' | 'w' | 'o' | 'kh' | 'kw' | 'stride' | 'pad' | 'groups', number>> {
  readonly dil?: number
  readonly dtype?: 'float32' | 'float64'
}

describeHere('with the library of this machine', () => {
  const seed = 35
  const generator = xoroshiro128plus(seed)
  const next = () => (generator.next() >>> 0) / 2 ** 32
  const whole = (low: number, high: number) => low + Math.floor(next() * (high - low))
  const random = (shape: readonly number[], dtype: 'float32' | 'float64') =>
    tensor(
      Array.from({ length: numelOf(shape) }, () => next() - 0.5),
      { dtype },
    ).reshape(shape)
  /** A matrix of that shape in one of the layouts that programs make. */
  const laidOut = (rows: number, cols: number, dtype: 'float32' | 'float64'): Tensor =>
    [
      () => random([rows, cols], dtype),
      () => random([cols, rows], dtype).T,
      () =>
        random([rows + 2, cols + 3], dtype)
          .narrow(0, 1, rows)
          .narrow(1, 2, cols),
      () =>
        random([cols + 1, rows + 5], dtype)
          .T.narrow(0, 1, cols > 0 ? rows : 0)
          .narrow(1, 0, cols),
      // Rows that are one row, and elements with gaps: the library knows neither.
      () => random([1, cols], dtype).expand([rows, cols]),
      () => random([rows, cols, 2], dtype).select(2, 1),
    ][whole(0, 6)]!()

  test.each(['float32', 'float64'] as const)(`products of any layout are those of wasm, but for rounding: %s (seed ${seed})`, (dtype) => {
    const tolerance = dtype === 'float32' ? 1e-5 : 1e-13
    for (let i = 0; i < 60; i++) {
      const [m, n, k] = [whole(1, 90), whole(1, 90), whole(1, 90)]
      const [a, b] = [laidOut(m, k, dtype), laidOut(k, n, dtype)]
      const product = (on: DeviceSpec) => [...withDevice(on, () => a.matmul(b)).dataSync()]
      const [got, right] = [product('blas'), product('wasm')]
      const worst = got.reduce((most, x, at) => Math.max(most, Math.abs(x - right[at]!)), 0)
      expect({ m, n, k, ok: worst <= tolerance * Math.sqrt(k) }).toEqual({ m, n, k, ok: true })
    }
  })

  test('NaN and infinities pass through as on wasm', () => {
    const a = random([64, 64], 'float32')
    const specials = tensor([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0]).reshape([2, 2])
    a.narrow(0, 3, 2).narrow(1, 5, 2).copy_(specials)
    const product = (on: DeviceSpec) => [...withDevice(on, () => a.matmul(eye(64))).dataSync()].map((x) => (Number.isFinite(x) ? 0 : x))
    expect(product('blas')).toEqual(product('wasm'))
  })

  // Products large enough for the library; strides, paddings, groups, a 1 × 1 window, one output row a block.
  test.each<Convolution>([
    { n: 2, c: 8, h: 20, w: 20, o: 12, kh: 3, kw: 3, stride: 1, pad: 1, groups: 1 },
    { n: 2, c: 6, h: 33, w: 31, o: 8, kh: 5, kw: 3, stride: 2, pad: 2, groups: 2 },
    { n: 1, c: 32, h: 18, w: 18, o: 24, kh: 1, kw: 1, stride: 1, pad: 0, groups: 1 },
    { n: 1, c: 160, h: 9, w: 120, o: 16, kh: 3, kw: 3, stride: 1, pad: 1, groups: 1 },
    // Taps that lie two rows apart, in groups and several blocks; the whole window as one, of a single channel.
    { n: 3, c: 32, h: 40, w: 40, o: 64, kh: 3, kw: 2, stride: 1, pad: 2, groups: 2, dil: 2 },
    { n: 3, c: 1, h: 28, w: 28, o: 16, kh: 5, kw: 5, stride: 1, pad: 0, groups: 1 },
    { n: 1, c: 256, h: 6, w: 6, o: 256, kh: 3, kw: 3, stride: 1, pad: 1, groups: 1 },
    { n: 2, c: 16, h: 14, w: 14, o: 20, kh: 3, kw: 3, stride: 1, pad: 1, groups: 1, dtype: 'float64' },
  ])(
    'CONV convolutions and their gradients are those of wasm, but for rounding: %j',
    ({ n, c, h, w, o, kh, kw, stride, pad, groups, dil = 1, dtype = 'float32' }) => {
      const extent = (size: number, window: number) => Math.floor((size + 2 * pad - (window - 1) * dil - 1) / stride) + 1
      const [oh, ow] = [extent(h, kh), extent(w, kw)]
      const g = { n, c, h, w, o, kh, kw, oh, ow, strideH: stride, strideW: stride, padH: pad, padW: pad, dilH: dil, dilW: dil, groups }
      const shapes = { x: [n, c, h, w], weight: [o, c / groups, kh, kw], y: [n, o, oh, ow] }
      const of = (shape: readonly number[]) => random(shape, dtype)
      const [x, weight, y, bias] = [of(shapes.x), of(shapes.weight), of(shapes.y), of([o])]
      const calls: [op: 'conv2d' | 'conv2dInput' | 'conv2dWeight', a: Tensor, b: Tensor, shape: readonly number[], bias: Tensor | null][] =
        [
          ['conv2d', x, weight, shapes.y, bias],
          ['conv2dInput', y, weight, shapes.x, null],
          ['conv2dWeight', x, y, shapes.weight, null],
        ]
      let products = 0
      const counting =
        (gemm: Blas['sgemm']): Blas['sgemm'] =>
        (...args) => {
          products++
          gemm(...args)
        }
      const counted = { ...blas!, sgemm: counting(blas!.sgemm), dgemm: counting(blas!.dgemm) }
      const [by, right] = [createBlasBackend(threadHeap, counted), createWasmBackend(threadHeap)]
      for (const [op, a, b, shape, withBias] of calls) {
        const [got, want] = [by, right].map(({ kernels }) => {
          const out = zeros(shape, { dtype })
          ;(kernels[op][dtype] as Conv)(a, b, withBias, out, g)
          return [...out.dataSync()]
        }) as [number[], number[]]
        const scale = want.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
        const worst = got.reduce((most, value, i) => Math.max(most, Math.abs(value - want[i]!)), 0)
        expect({ op, ok: worst <= (dtype === 'float32' ? 1e-5 : 1e-13) * scale, products: products > 0 }).toEqual({
          op,
          ok: true,
          products: true,
        })
        products = 0
      }
    },
  )

  test('its products use as many threads as setComputeThreads says, and no helpers; another thread that has more keeps its number', () => {
    const numbers: number[] = []
    const recording = { ...blas!, setThreads: (n: number) => numbers.push(n) }
    const compute = () => {
      const [a, out] = [random([200, 200], 'float32'), zeros([200, 200])]
      ;(createBlasBackend(threadHeap, recording).kernels.matmul.float32 as Matmul)(a, a, out)
    }
    compute()
    expect(numbers).toEqual([1])
    const helped = helperCounts().helped
    const restore = withThreadLimits({ cores: 4 })
    const handle = threadHeap().handle()!
    const another = Heap.attach(handle)
    try {
      setComputeThreads(2)
      expect(numbers.splice(0)).toEqual([1, 2])
      compute()
      expect(numbers.splice(0)).toEqual([2, 2])
      expect(helperCounts().helped).toBe(helped)
      another.claimHelpers(2, 3)
      setComputeThreads(1)
      compute()
      expect(new Set(numbers.splice(0))).toEqual(new Set([3]))
    } finally {
      threadHeap().reclaim(handle)
      setComputeThreads(2)
      setComputeThreads(1)
      restore()
    }
    expect(numbers.at(-1)).toBe(1)
  })

  test('kernelFor names the library', () => {
    expect(device('blas').kernelFor('matmul', 'float32', [64, 64])).toMatchObject({
      device: 'blas',
      variant: 'blas (for large products), simd tiles (loop for small products)',
    })
    expect(device('blas').kernelFor('add', 'float32', [64, 64]).variant).toBe('simd')
    expect(device('blas').kernelFor('matmul', 'int32', [64, 64]).variant).toBe('loop')
  })

  test('the library computes large products, and kernels.wasm small ones', () => {
    const calls: number[] = []
    const counting: Blas['sgemm'] = (...args) => {
      calls.push(args[3])
      blas!.sgemm(...args)
    }
    const counted: Blas = { ...blas!, sgemm: counting }
    const { kernels } = createBlasBackend(threadHeap, counted)
    const product = (n: number) => {
      const [a, b, out] = [random([n, n], 'float32'), random([n, n], 'float32'), zeros([n, n])]
      ;(kernels.matmul.float32 as Matmul)(a, b, out)
    }
    product(16)
    expect(calls).toEqual([])
    product(64)
    expect(calls).toEqual([64])
  })

  test('a product is one call up to 2³⁰ multiplications, and one of 64 rows or more beyond', () => {
    const calls: number[] = []
    const { kernels } = createBlasBackend(threadHeap, { ...blas!, sgemm: (...args) => calls.push(args[3]) })
    const product = (m: number, n: number, k: number) => (kernels.matmul.float32 as Matmul)(zeros([m, k]), zeros([k, n]), zeros([m, n]))
    product(1024, 1024, 1024)
    expect(calls.splice(0)).toEqual([1024])
    product(1025, 1024, 1024)
    expect(calls.splice(0)).toEqual([1024, 1])
    product(130, 8192, 4096)
    expect(calls).toEqual([64, 64, 2])
  })

  opsSuite('blas', () => device('blas'), { tolerance: { float32: 1e-6, float64: 1e-13 } })
})
