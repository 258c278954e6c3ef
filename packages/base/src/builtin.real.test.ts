/** In a process of its own, whose `require` is then made to fail, as jest's does after a test file has ended. */
import { execFileSync } from 'node:child_process'
import { expect, test } from '@jest/globals'

const SCRIPT = `import Module from 'node:module'
const { builtin } = await import(${JSON.stringify(new URL('./builtin.js', import.meta.url).href)})
builtin('node:zlib')
Module._load = () => { throw new Error('torn down') }
let other = 'loaded'
try { builtin('node:dgram') } catch (error) { other = error.message }
console.log(typeof builtin('node:zlib').gzipSync, other)
`

test('CLU-122 a module of Node that was loaded once is there also when nothing can be required any more', () => {
  expect(execFileSync(process.execPath, ['--input-type=module', '-e', SCRIPT], { encoding: 'utf8' })).toBe('function torn down\n')
})
