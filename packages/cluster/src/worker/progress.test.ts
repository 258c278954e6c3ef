/** Arguments of `reportProgress`, and where it does nothing. */

import { describe, expect, test } from '@jest/globals'
import { reportProgress } from './progress.js'

describe('reportProgress', () => {
  test('does nothing outside of a worker', () => {
    expect(() => reportProgress({ done: 1, total: 2, text: 'x' })).not.toThrow()
  })

  test.each([{ done: Number.NaN }, { done: '1' as unknown as number }, { done: 1, total: Number.POSITIVE_INFINITY }])(
    'refuses %j',
    (progress) => {
      expect(() => reportProgress(progress)).toThrow('finite numbers')
    },
  )
})
