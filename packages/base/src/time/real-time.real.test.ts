/** Tests a program that loads postgrad while its timers are faked: CLK-3. */
import { spawnSync } from 'node:child_process'
import { expect, test } from '@jest/globals'

/** Warnings of a process that loads the timers after `before`. */
function warningsAfter(before: string): string {
  const url = JSON.stringify(new URL('./real-time.js', import.meta.url).href)
  const program = `
    import { writeSync } from 'node:fs'
    process.on('warning', ({ name, code, message }) => writeSync(1, [name, code, message].join(' ')))
    ${before}
    await import(${url})`
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  expect([status, stderr]).toEqual([0, ''])
  return stdout
}

test('CLK-3 timers or ticks that are faked when the library is loaded are warned of, though no tick ever comes', () => {
  const message = /^Warning POSTGRAD_FAKE_TIMERS postgrad was loaded while .* Import postgrad before/
  expect(warningsAfter('globalThis.setImmediate = Object.assign(() => {}, { clock: {} })')).toMatch(message)
  expect(warningsAfter('process.nextTick = Object.assign(() => {}, { clock: {} })')).toMatch(message)
  expect(warningsAfter('')).toBe('')
})
