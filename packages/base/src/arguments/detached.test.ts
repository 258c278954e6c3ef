/** Which bytes have gone: transferred, or cut off by a resize; and which are only few. */
import { expect, test } from '@jest/globals'
import { isDetached } from './detached.js'

type Resizable = ArrayBuffer & { resize(bytes: number): void }
const resizable = (): Resizable =>
  new (ArrayBuffer as unknown as new (bytes: number, options: object) => Resizable)(16, { maxByteLength: 16 })
type View = new (buffer: ArrayBuffer, offset?: number, length?: number) => ArrayBufferView
const VIEWS: readonly View[] = [Uint8Array, Float64Array, BigInt64Array, DataView]

test('a view that a resize has cut off has gone, as one whose buffer was transferred', () => {
  for (const View of VIEWS) {
    const buffer = resizable()
    const views = [new View(buffer, 8, 1), new View(buffer, 8), new View(buffer, 0, 0), new View(buffer)]
    expect(views.map(isDetached)).toEqual([false, false, false, false])
    buffer.resize(4)
    expect(views.map(isDetached)).toEqual([true, true, false, false])
    buffer.resize(0)
    expect(views.slice(2).map(isDetached)).toEqual([false, false])
    expect(isDetached(buffer)).toBe(false)
    structuredClone(buffer, { transfer: [buffer] })
    expect([buffer, ...views].map(isDetached)).toEqual([true, true, true, true, true])
  }
  expect([new ArrayBuffer(0), new SharedArrayBuffer(0), new SharedArrayBuffer(8)].map(isDetached)).toEqual([false, false, false])
})
