/** The staging memory: made when first needed, grown to the largest call, its allocator checked. */
import { expect, test } from '@jest/globals'
import { createWasmBackend } from './backend.js'
import { align, LazyInstance, WasmInstance } from './instance.js'

test('nothing is made before a kernel needs it', () => {
  const lazy = new LazyInstance()
  expect(lazy.made).toBe(false)
  lazy.get()
  expect(lazy.made).toBe(true)
  expect(lazy.get()).toBe(lazy.get())
})

test('memory grows with a call and the views follow; the next call starts at zero again', () => {
  const instance = new WasmInstance()
  const before = instance.byteLength
  instance.begin(before + 16)
  expect(instance.byteLength).toBeGreaterThan(before)
  expect(instance.f32.byteLength).toBe(instance.byteLength)
  expect(instance.f64.byteLength).toBe(instance.byteLength)
  expect(instance.take(4)).toBe(0)
  expect(instance.take(20)).toBe(16)
  expect(instance.take(1)).toBe(48)
  instance.begin(64)
  expect(instance.take(64)).toBe(0)
})

test('a kernel that takes more than it began with is a bug', () => {
  const instance = new WasmInstance()
  instance.begin(align(20))
  instance.take(20)
  expect(() => instance.take(1)).toThrow('more than it began with')
})

test('what wasm cannot address is refused with a code', () => {
  const instance = new WasmInstance()
  expect(() => instance.begin(2 ** 33)).toThrow(expect.objectContaining({ code: 'STAGING_EXHAUSTED', values: { bytes: 2 ** 33 } }))
  expect(instance.take.bind(instance, 16)).not.toThrow()
})

test('chosen by size alone, and named', () => {
  const backend = createWasmBackend()
  expect(backend.variantOf('add', 'float32', [3, 3])).toBe('loop')
  expect(backend.variantOf('add', 'float32', [30, 30])).toBe('simd')
  expect(backend.variantOf('tanh', 'float32', [1])).toBe('simd')
  expect(backend.variantOf('matmul', 'float32', [3, 3])).toBe('loop')
  expect(backend.variantOf('matmul', 'float64', [8, 64, 64])).toBe('simd tiles')
  expect(backend.variantOf('eq', 'int32', [1000])).toBe('loop')
  expect(backend.variantOf('copy', 'bool', [1000])).toBe('host copy')
})
