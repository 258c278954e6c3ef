/** Random views of one tensor: which two of them share an element, compared with their elements one by one. */
import { expect, test } from '@jest/globals'
import { arange, type Tensor, zeros } from '@postgrad/tensor'
import fc from 'fast-check'
import { firstOverlap } from './overlap.js'

const BASE = arange(24)
/** Each element is its own place. */
const elements = (view: Tensor): number[] => (view.toArray() as unknown as number[]).flat(3) as number[]

const view = fc
  .record({ rows: fc.integer({ min: 1, max: 4 }), turned: fc.boolean(), from: fc.nat(), length: fc.nat(), column: fc.option(fc.nat()) })
  .map(({ rows, turned, from, length, column }) => {
    const matrix = BASE.reshape([rows, 24 / rows])
    const x = turned ? matrix.transpose(0, 1) : matrix
    const start = from % x.shape[0]!
    const part = x.narrow(0, start, length % (x.shape[0]! - start + 1))
    return column === null ? part : part.select(1, column % part.shape[1]!)
  })

test('PG-20 views that share an element are found, and no others', () => {
  let shared = 0
  fc.assert(
    fc.property(fc.array(view, { maxLength: 5 }), (views) => {
      const found = firstOverlap([zeros([3]), ...views, zeros([3])])
      const pairs = views.flatMap((a, i) => views.slice(i + 1).map((b) => elements(a).some((element) => elements(b).includes(element))))
      expect(found !== null).toBe(pairs.includes(true))
      if (found === null) return
      shared++
      const [a, b] = found.map((place) => elements(views[place - 1]!))
      expect(a!.some((element) => b!.includes(element))).toBe(true)
      expect(found[0]).toBeLessThan(found[1]!)
    }),
    { numRuns: 300 },
  )
  expect(shared).toBeGreaterThan(50)
})
