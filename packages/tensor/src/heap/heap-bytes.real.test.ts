/** When a thread gets a heap, and of which size: in a process of its own, since this thread already has a heap. */
import { execFileSync } from 'node:child_process'
import { expect, test } from '@jest/globals'

const MIB = 2 ** 20
const program = `
  import { RESERVED_BYTES_MAX, RESERVED_BYTES_MIN } from ${JSON.stringify(new URL('./shared-memory.js', import.meta.url).href)}
  import { setHeapBytes, threadHeap } from ${JSON.stringify(new URL('./thread-heap.js', import.meta.url).href)}
  const refusal = (bytes) => {
    try {
      setHeapBytes(bytes)
    } catch ({ code, op, values }) {
      return [code, op, values.heapBytes]
    }
  }
  const refused = [0, -1, 1.5, NaN, RESERVED_BYTES_MIN - 1, RESERVED_BYTES_MAX + 1, '1'].map(refusal)
  setHeapBytes(${100 * MIB})
  const bytes = threadHeap().buffer.byteLength
  setHeapBytes(${200 * MIB})
  console.log(JSON.stringify({ refused, bytes, late: refusal(RESERVED_BYTES_MIN) }))
`

/** Runs the program in a process of its own, and parses the JSON that it prints. */
function printed(text: string): unknown {
  const { NODE_OPTIONS: _, ...env } = process.env
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', text], { env, encoding: 'utf8' }))
}

/** @param before what happens before any tensor is made */
const firstTensors = (before: string) => `
  import { tensor } from ${JSON.stringify(new URL('../index.js', import.meta.url).href)}
  import { currentHeap } from ${JSON.stringify(new URL('./thread-heap.js', import.meta.url).href)}
  ${before}
  const made = (length) => [tensor(new Float32Array(length)).storage.kind, currentHeap() !== null]
  console.log(JSON.stringify([made(2047), made(2048), made(2048)]))
`

test('HEAP-13 a thread gets its heap with its first tensor of 8 KiB, and smaller ones need none', () => {
  expect(printed(firstTensors(''))).toEqual([
    ['managed', false],
    ['heap', true],
    ['heap', true],
  ])
})

test('HEAP-13 where the machine gives no memory for it, tensors are managed, and it is asked once', () => {
  const refuses = `
    let asked = 0
    WebAssembly.Memory = class {
      constructor() {
        asked++
        throw new RangeError('no room')
      }
    }
    process.on('exit', (code) => void (asked > 7 && (process.exitCode = 9)))
  `
  expect(printed(firstTensors(refuses))).toEqual(Array.from({ length: 3 }, () => ['managed', false]))
})

test('HEAP-11 its size can be set while there is none; another is refused', () => {
  const { refused, bytes, late } = printed(program) as { refused: unknown; bytes: number; late: unknown }
  expect(refused).toEqual(Array.from({ length: 7 }, () => ['INVALID_ARGUMENT', 'heapBytes', null]))
  expect([bytes, late]).toEqual([100 * MIB, ['HEAP_EXISTS', 'heapBytes', 100 * MIB]])
})
