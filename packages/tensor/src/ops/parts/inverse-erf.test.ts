/** erfinv where PyTorch's golden values do not reach: its tails, and its accuracy in both dtypes, against 40 digits (mpmath). */
import { expect, test } from '@jest/globals'
import { tensor, withDevice } from '../../index.js'
import { device } from '../../tensor/device.js'
import { rawOperations } from '../define/define.js'

/** x as 1 − 2⁻ᵏ, and erfinv of it. */
const TAILS = { 3: 1.0847870400692832, 12: 2.5939005131344874, 24: 3.832506856900711, 36: 4.7745974236567505, 37: 4.845185938111059 }
const FURTHER = { 45: 5.377767781541279, 53: 5.8635847487551676 }
/** Tiny arguments, and both sides of the border between two approximations. */
const INNER: readonly (readonly [number, number])[] = [
  [1e-300, 8.86226925452758e-301],
  [1e-10, 8.862269254527581e-11],
  [0.3, 0.2724627147267543],
  [0.85, 1.0179024648320276],
  [0.8500001, 1.0179027145953181],
  [0.97, 1.5344856217777179],
]

test.each(['wasm', 'js'] as const)(
  'float64 on %s is exact to a few units in the last place, up to the last number below 1',
  async (name) => {
    await device(name).ready()
    const tails = Object.entries({ ...TAILS, ...FURTHER }).map(([k, y]) => [1 - 2 ** -Number(k), y] as const)
    for (const [x, y] of [...INNER, ...tails]) {
      const out = withDevice(device(name), () => rawOperations.erfinv(tensor(Float64Array.of(x, -x))).dataSync())
      expect(Math.abs(out[0]! / y - 1)).toBeLessThan(1e-15)
      expect(out[1]).toBe(-out[0]!)
    }
  },
)

test.each(['wasm', 'js'] as const)(
  'float32 on %s is exact to a few units in the last place, up to the last number below 1',
  async (name) => {
    await device(name).ready()
    for (const [k, y] of [...Object.entries(TAILS).filter(([k]) => Number(k) <= 24)]) {
      const out = withDevice(device(name), () => rawOperations.erfinv(tensor(Float32Array.of(1 - 2 ** -Number(k)))).dataSync())
      expect(Math.abs(out[0]! / y - 1)).toBeLessThan(5e-7)
    }
  },
)
