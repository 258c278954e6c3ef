/** The size of a thread's heap: in a process of its own, since this thread already has a heap. */
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

test('HEAP-11 its size can be set while there is none; another is refused', () => {
  const { NODE_OPTIONS: _, ...env } = process.env
  const { refused, bytes, late } = JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '-e', program], { env, encoding: 'utf8' }),
  )
  expect(refused).toEqual(Array.from({ length: 7 }, () => ['INVALID_ARGUMENT', 'heapBytes', null]))
  expect([bytes, late]).toEqual([100 * MIB, ['HEAP_EXISTS', 'heapBytes', 100 * MIB]])
})
