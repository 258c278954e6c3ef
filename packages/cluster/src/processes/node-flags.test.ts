/** Flags of Node that processes inherit. */
import { expect, test } from '@jest/globals'
import { flagsFor } from './node-flags.js'

test('CLU-90 a process runs no script of the one that starts it, and has all other flags', () => {
  expect(flagsFor(['--input-type=module', '-e', 'launch()', '--expose-gc'])).toEqual(['--expose-gc'])
  expect(flagsFor(['--import', 'tsx', '--eval=launch()', '--max-old-space-size=500'])).toEqual([
    '--import',
    'tsx',
    '--max-old-space-size=500',
  ])
  expect(flagsFor(['--input-type', 'module', '-p', '1', '-i'])).toEqual([])
})
