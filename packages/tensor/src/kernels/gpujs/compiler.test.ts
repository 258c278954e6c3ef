/** The compiler of gpu.js kernels: the mode that runs is checked, warnings are failures, and the number of kernels is bounded. */
import { describe, expect, test } from '@jest/globals'
import { operandOf } from '../suite/layouts.suite.js'
import { createGpujsBackend } from './backend.js'
import { type Argument, type Gpu, KernelCompiler } from './compiler.js'

const DOUBLE = 'function (x) { return x[this.thread.x] * 2; }'

describe('gpu.js', () => {
  test('compiles once per key', () => {
    const compiler = new KernelCompiler()
    const x = Float32Array.of(1, 2, 3)
    for (let i = 0; i < 3; i++) expect([...(compiler.run('double|3', () => DOUBLE, [3], {}, [x]) as Float32Array)]).toEqual([2, 4, 6])
    expect(compiler.counts).toEqual({ kept: 1, compiled: 1 })
  })

  test('keeps a bounded number of kernels, dropping the least recently used', () => {
    const compiler = new KernelCompiler(3)
    const run = (n: number) => compiler.run(`double|${n}`, () => DOUBLE, [n], {}, [new Float32Array(n).fill(n)]) as Float32Array
    for (const n of [1, 2, 3, 1, 4]) expect(run(n)[n - 1]).toBe(2 * n)
    expect(compiler.counts).toEqual({ kept: 3, compiled: 4 })
    run(1) // used again before 4 came, so 2 went
    expect(compiler.counts.compiled).toBe(4)
    run(2)
    expect(compiler.counts).toEqual({ kept: 3, compiled: 5 })
  })

  test('a loop goes beyond 1000 rounds, because its bound is a constant', () => {
    const source = 'function (x) { let n = 0; for (let i = 0; i < this.constants.k; i++) { n += x[i]; } return n; }'
    const result = new KernelCompiler().run('count', () => source, [1], { k: 5000 }, [new Float32Array(5000).fill(1)])
    expect((result as Float32Array)[0]).toBe(5000)
  })

  test.each([
    ['for', 'for (let i = 0; i < n; i++) { t += 1; }'],
    ['while', 'while (t < n) { t += 1; }'],
    ['do', 'do { t += 1; } while (t < n);'],
  ])('and where its bound is an argument: %s', (_, loop) => {
    const source = `function (x, n) { let t = 0; ${loop} return t; }`
    const result = new KernelCompiler().run('loop', () => source, [1], {}, [Float32Array.of(0), 5000])
    expect((result as Float32Array)[0]).toBe(5000)
  })

  test.each([
    ['an unknown name', 'function (x) { return y[this.thread.x]; }', /y/i],
    ['a syntax error', 'function (x) { return x[; }', /Unexpected token/],
  ])('a kernel that gpu.js cannot build is refused with its words, and the console is as it was: %s', (_, source, words) => {
    const { warn } = console
    const compiler = new KernelCompiler()
    expect(() => compiler.run('broken|3', () => source, [3], {}, [Float32Array.of(1, 2, 3)])).toThrow(
      expect.objectContaining({ code: 'KERNEL_COMPILE', op: 'broken', message: expect.stringMatching(words) }),
    )
    expect(console.warn).toBe(warn)
    expect(compiler.counts.kept).toBe(0)
  })
})

describe('what gpu.js does when it cannot build a kernel in the mode asked for', () => {
  /** A gpu.js that does with every kernel what the real one does with graphics and textures: it changes the mode, and warns at most. */
  const fallingBack = (ran: string, reason: string | null, warning: string | null) => (): Gpu => ({
    kernels: [],
    createKernel: () =>
      Object.assign(
        (x: Argument) => {
          if (warning !== null) console.warn(warning)
          return x as Float32Array
        },
        { kernel: { constructor: { mode: ran }, fallbackReason: reason, destroy() {} } },
      ),
  })
  test('a kernel that is refused is not kept by gpu.js either', () => {
    let destroyed = 0
    const gpu = fallingBack('gpu', null, null)() as Gpu & { kernels: object[] }
    const made = gpu.createKernel
    gpu.createKernel = (...args) => {
      const kernel = made(...args)
      kernel.kernel.destroy = () => destroyed++
      gpu.kernels.push(kernel.kernel)
      return kernel
    }
    expect(() => run(() => gpu)).toThrow(expect.objectContaining({ code: 'KERNEL_MODE' }))
    expect([destroyed, gpu.kernels]).toEqual([1, []])
  })
  const run = (load: () => Gpu) => new KernelCompiler(3, load).run('k', () => DOUBLE, [1], {}, [Float32Array.of(1)])

  test('another mode is refused, silent or not', () => {
    expect(() => run(fallingBack('gpu', null, null))).toThrow(
      expect.objectContaining({
        code: 'KERNEL_MODE',
        message: expect.stringContaining("got mode 'gpu'"),
        values: expect.objectContaining({ ran: 'gpu' }),
      }),
    )
  })
  test('a reason to fall back is refused', () => {
    expect(() => run(fallingBack('cpu', 'no textures', null))).toThrow(
      expect.objectContaining({ message: expect.stringContaining('no textures') }),
    )
  })
  test('a warning is refused, and does not reach the console', () => {
    expect(() => run(fallingBack('cpu', null, 'Falling back to CPU'))).toThrow(
      expect.objectContaining({ values: expect.objectContaining({ warnings: ['Falling back to CPU'] }) }),
    )
  })
  test('the mode asked for is accepted', () => {
    expect(run(fallingBack('cpu', null, null))).toEqual(Float32Array.of(1))
  })
})

test('many shapes on one device, far beyond the bound', () => {
  const compiler = new KernelCompiler(16)
  const { kernels } = createGpujsBackend(compiler)
  const add = kernels.add.float32
  if ('unsupported' in add) throw new Error(add.unsupported)
  for (let n = 1; n <= 200; n++) {
    const out = new Float32Array(n)
    add(operandOf(new Float32Array(n).fill(1), 0, [n]), operandOf(Float32Array.of(n), 0, []), operandOf(out, 0, [n]))
    expect(out[n - 1]).toBe(n + 1)
  }
  expect(compiler.counts).toEqual({ kept: 16, compiled: 200 })
})

test('more elements than float32 can index are refused before anything is compiled', () => {
  const compiler = new KernelCompiler()
  const { kernels } = createGpujsBackend(compiler)
  const neg = kernels.neg.float32
  if ('unsupported' in neg) throw new Error(neg.unsupported)
  const n = 2 ** 24 + 1
  const x = new Float32Array(n)
  expect(() => neg(operandOf(x, 0, [n]), operandOf(x, 0, [n]), 0, 0)).toThrow(expect.objectContaining({ code: 'KERNEL_UNSUPPORTED' }))
  expect(compiler.counts.compiled).toBe(0)
})
