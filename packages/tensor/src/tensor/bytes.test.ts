/** Access to bytes: elements in the order of rows, and the refusal where there are none. */
import { describe, expect, test } from '@jest/globals'
import { CPU } from '../heap/memory.js'
import { arange, Tensor, tensor } from '../index.js'
import { copyOfElements, elementsOf, readElements, writeElements } from './bytes.js'

describe('the door for bytes', () => {
  const strided = () => arange(24, { dtype: 'int32' }).reshape([2, 3, 4]).transpose(0, 2).select(1, 1)
  const inOrder = [4, 16, 5, 17, 6, 18, 7, 19]

  test('gives elements in the order of rows, whatever the strides are', () => {
    expect([...elementsOf(strided())]).toEqual(inOrder)
    expect([...copyOfElements(strided())]).toEqual(inOrder)
    expect([...elementsOf(tensor(3).expand([2, 2]))]).toEqual([3, 3, 3, 3])
    expect([...elementsOf(Tensor.empty('float32', [0, 3], CPU).transpose(0, 1))]).toEqual([])
    const into = new Int32Array(10).fill(-1)
    readElements(strided(), into, 1)
    expect([...into]).toEqual([-1, ...inOrder, -1])
  })

  test('gives dense elements where they lie, and a copy in a buffer of its own', () => {
    for (const n of [4, 100]) {
      const x = arange(n + 2).narrow(0, 1, n)
      const seen = elementsOf(x)
      const copy = copyOfElements(x)
      x.add_(1)
      expect(seen[0]).toBe(2)
      expect(copy[0]).toBe(1)
      expect([seen.length, copy.buffer.byteLength]).toEqual([n, 4 * n])
      const into = new Float32Array(n + 1)
      readElements(x, into, 1)
      expect([...into.subarray(1)]).toEqual([...seen])
    }
    expect(copyOfElements(strided()).buffer.byteLength).toBe(32)
  })

  test('writes some elements over others, and of bool nothing but 0 and 1', () => {
    for (const n of [5, 200]) {
      const x = arange(n + 1).narrow(0, 1, n)
      writeElements(
        x,
        Float32Array.from({ length: n }, (_, i) => -i),
        1,
        n - 2,
        1,
      )
      expect(x.toArray()).toEqual([1, ...Array.from({ length: n - 2 }, (_, i) => -1 - i), n])
    }
    const flags = tensor([true, false, true])
    writeElements(flags, Uint8Array.of(0, 7, 1))
    expect([...flags.dataSync()]).toEqual([0, 1, 1])
  })

  test('refuses a tensor that is not in the memory of this process, and says what to do', () => {
    const away = tensor([1, 2])
    Object.defineProperty(away.storage, 'host', { value: null })
    for (const use of [
      elementsOf,
      copyOfElements,
      (x: Tensor) => readElements(x, new Float32Array(2), 0),
      (x: Tensor) => writeElements(x, new Float32Array(2)),
    ]) {
      expect(() => use(away)).toThrow(
        expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', remedy: expect.stringMatching(/await x\.cpu/) }),
      )
    }
  })
})
