/** Node's flags that processes inherit. */
import { expect, test } from '@jest/globals'
import { environmentFor, flagsFor } from './node-flags.js'

test('CLU-90 a process runs no script of the one that starts it, and has all other flags', () => {
  expect(flagsFor(['--input-type=module', '-e', 'launch()', '--expose-gc'])).toEqual(['--expose-gc'])
  expect(flagsFor(['--import', 'tsx', '--eval=launch()', '--max-old-space-size=500'])).toEqual([
    '--import',
    'tsx',
    '--max-old-space-size=500',
  ])
  expect(flagsFor(['--input-type', 'module', '-p', '1', '-i'])).toEqual([])
})

test('CLU-115 a process has an inspector of its own port, and waits for no debugger', () => {
  expect(
    flagsFor([
      '--inspect-brk',
      '--inspect=9229',
      '--inspect-wait=0.0.0.0:9230',
      '--inspect-port=9000',
      '--inspect-port',
      '9001',
      '--expose-gc',
    ]),
  ).toEqual(['--inspect=0', '--inspect=0', '--inspect=0.0.0.0:0', '--expose-gc'])
  for (const host of ['[::1]', '0.0.0.0', 'localhost', 'my-9.host']) {
    expect(flagsFor([`--inspect=${host}`, `--inspect-brk=${host}:9229`])).toEqual([`--inspect=${host}:0`, `--inspect=${host}:0`])
  }
  expect(flagsFor(['--inspect-publish-uid=http'])).toEqual(['--inspect-publish-uid=http'])
  expect(environmentFor({ A: 'b', NODE_OPTIONS: '--require ./x--inspect.js --inspect-brk=[::1]:9229 --inspect-port=9000' })).toEqual({
    A: 'b',
    NODE_OPTIONS: '--require ./x--inspect.js --inspect=[::1]:0 ',
  })
  expect(environmentFor({ A: 'b' })).toEqual({ A: 'b' })
})
