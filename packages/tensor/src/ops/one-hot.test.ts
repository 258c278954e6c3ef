/** oneHot of few and of many classes, which different kernels write. */
import { expect, test } from '@jest/globals'
import { Generator, randint, tensor, withDevice } from '../index.js'
import { oneHot } from './all.js'

test.each(['wasm', 'js'] as const)('oneHot has a one in the place of each class, by the kernels of %s', (name) => {
  withDevice(name, () => {
    for (const shape of [[], [0], [3], [2, 0], [2, 3], [40, 50]]) {
      const classes = randint(0, 7, shape, { dtype: 'int32', generator: new Generator(3) })
      const rows = oneHot(classes, 7)
      expect([rows.dtype, rows.shape]).toEqual(['int32', [...shape, 7]])
      const expected = [...classes.dataSync()].flatMap((each) => Array.from({ length: 7 }, (_, i) => Number(i === each)))
      expect([...rows.dataSync()]).toEqual(expected)
    }
    // A view with gaps, and whole numbers of another dtype.
    const wide = tensor([
      [1, 9],
      [0, 9],
      [2, 9],
    ])
    expect(oneHot(wide.select(1, 0)).toArray()).toEqual([
      [0, 1, 0],
      [1, 0, 0],
      [0, 0, 1],
    ])
  })
})
