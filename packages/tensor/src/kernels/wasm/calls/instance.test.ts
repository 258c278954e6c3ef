/** The instance on the heap: made when first needed, its allocator, and operands inside and outside of it. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { Heap } from '../../../heap/heap.js'
import { RESERVED_BYTES_MIN } from '../../../heap/shared-memory.js'
import { threadHeap } from '../../../heap/thread-heap.js'
import type { Exports } from '../../elementwise/definition.js'
import { ROWS } from '../../elementwise/rows.js'
import { operandOf } from '../../suite/layouts.suite.js'
import type { Binary, Copy, Indexed, Rows } from '../../table/operands.js'
import { createWasmBackend } from '../backend.js'
import { align, LazyInstance, WasmInstance } from './instance.js'

test('nothing is made before a kernel needs it', () => {
  const lazy = new LazyInstance(threadHeap)
  expect(lazy.made).toBe(false)
  lazy.get()
  expect(lazy.made).toBe(true)
  expect(lazy.get()).toBe(lazy.get())
})

test('what a call takes lies behind each other, aligned; the next call starts again', () => {
  const heap = threadHeap()
  const instance = new WasmInstance(heap)
  for (const view of [instance.f32, instance.f64, instance.i32, instance.u8]) expect(view.buffer).toBe(heap.buffer)
  const base = instance.begin(64)
  expect(base % 16).toBe(0)
  expect(instance.take(4)).toBe(base)
  expect(instance.take(20)).toBe(base + 16)
  expect(instance.take(1)).toBe(base + 48)
  instance.begin(64)
  expect(instance.take(64)).toBe(base)
})

/** The names that rows of element-wise ops have, and those that files of this folder declare or write. */
function namesOfExports(): string[] {
  type Names = { readonly wasm?: string; readonly wasm64?: string; readonly simd?: Exports; readonly square?: Exports }
  const rows: readonly Names[] = Object.values(ROWS).flatMap((table) => Object.values(table as object))
  const ofRows = rows.flatMap(({ wasm, wasm64, simd, square }) => [
    ...[wasm, wasm64].filter((name) => name !== undefined),
    ...Object.values<string>({ ...simd, ...square }),
  ])
  const folder = new URL('../../../../src/kernels/wasm/', import.meta.url)
  const texts = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.includes('.test.'),
  )
  const inFiles = texts.flatMap((name) => [
    ...readFileSync(new URL(name, folder), 'utf8').matchAll(/(?:readonly |'|\bk\.)(\w+_(?:[fiu]?\d+))\b/g),
  ])
  expect([ofRows.length > 100, inFiles.length > 50]).toEqual([true, true])
  return [...ofRows, ...inFiles.map(([, name]) => name!)]
}

test('kernels.wasm exports a function of every name that a row or a file names', () => {
  const kernels = new WasmInstance(threadHeap()).kernels as object as Readonly<Record<string, unknown>>
  expect(namesOfExports().filter((name) => typeof kernels[name] !== 'function')).toEqual([])
})

test('an array is direct when its buffer is the memory, by address', () => {
  const heap = threadHeap()
  const instance = new WasmInstance(heap)
  expect(instance.direct(new Float32Array(heap.buffer, 128, 100) as unknown as Float32Array, 3)).toBe(140)
  expect(instance.direct(new Uint8Array(heap.buffer, 7, 100) as unknown as Uint8Array, 3)).toBe(10)
  expect(instance.direct(new Float32Array(100), 3)).toBe(-1)
})

test('a kernel that takes more than it began with is a bug', () => {
  const instance = new WasmInstance(threadHeap())
  instance.begin(align(20))
  instance.take(20)
  expect(() => instance.take(1)).toThrow('more than it began with')
})

test('what wasm cannot address is refused with a code', () => {
  const instance = new WasmInstance(threadHeap())
  expect(() => instance.begin(2 ** 33)).toThrow(expect.objectContaining({ code: 'STAGING_EXHAUSTED', values: { bytes: 2 ** 33 } }))
  instance.begin(16)
  expect(instance.take.bind(instance, 16)).not.toThrow()
})

test('chosen by size alone, and named', () => {
  const backend = createWasmBackend(threadHeap)
  expect(backend.variantOf('add', 'float32', [3, 3])).toBe('loop')
  expect(backend.variantOf('add', 'float32', [30, 30])).toBe('simd')
  expect(backend.variantOf('tanh', 'float32', [1])).toBe('simd')
  expect(backend.variantOf('matmul', 'float64', [8, 64, 64])).toBe('simd tiles (loop for small products)')
  expect(backend.variantOf('eq', 'int32', [1000])).toBe('simd')
  expect(backend.variantOf('eq', 'bool', [1000])).toBe('loop')
  expect(backend.variantOf('copy', 'bool', [1000])).toBe('loop (simd for conversions, strides and within the heap)')
})

test('a small heap that tensors fill: operands elsewhere whose copies would not fit are walked', () => {
  const heap = Heap.create({ reservedBytes: RESERVED_BYTES_MIN, limitBytes: RESERVED_BYTES_MIN })
  expect(heap.allocate(40_000_000)).not.toBeNull()
  const { copy, indexSelect, flip, add } = createWasmBackend(() => heap).kernels
  const n = 10_000_000
  const x = Float32Array.from({ length: n }, (_, i) => i)
  const out = new Float32Array(n)
  const whole = operandOf(x, 0, [n])
  ;(copy.float32 as Copy)(operandOf(x, 7, [n], [0]), operandOf(out, 0, [n]))
  expect([out[0], out[n - 1]]).toEqual([7, 7])
  ;(add.float32 as Binary)(operandOf(x, 0, [2, n / 2]), operandOf(x, 1, [2, n / 2], [n / 2, 0]), operandOf(out, 0, [2, n / 2]))
  expect([out[5], out[n - 1]]).toEqual([6, n + n / 2])
  ;(indexSelect.float32 as Indexed)(
    whole,
    operandOf(
      Int32Array.from({ length: n }, (_, i) => n - 1 - i),
      0,
      [n],
    ),
    operandOf(out, 0, [n]),
    1,
    n,
    n,
    1,
  )
  expect([out[0], out[n - 1]]).toEqual([n - 1, 0])
  ;(flip.float32 as Rows)(whole, operandOf(out, 0, [n]), 1, n, 1)
  expect([out[0], out[n - 1]]).toEqual([n - 1, 0])
})

test('MEM-1 kernels.wasm has no statics: no data section, no globals, memory imported', () => {
  const bytes = readFileSync(new URL('../../../kernels.wasm', import.meta.url))
  const sections = sectionIds(bytes)
  expect(sections).toContain(2) // imports
  expect(sections).toContain(10) // code
  expect(sections).not.toContain(5) // memories of its own
  expect(sections).not.toContain(6) // globals
  expect(sections).not.toContain(11) // data
})

/** The ids of a WebAssembly module's sections, in order. */
function sectionIds(bytes: Uint8Array): number[] {
  const ids: number[] = []
  let at = 8
  while (at < bytes.length) {
    ids.push(bytes[at++]!)
    let size = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!
      size |= (byte & 127) << shift
      if (byte < 128) break
    }
    at += size
  }
  return ids
}
