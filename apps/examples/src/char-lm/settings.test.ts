/** The command line: defaults by device, and what it refuses, in which words. */
import { describe, expect, test } from '@jest/globals'
import { HELP, readSettings } from './settings.js'

describe('readSettings', () => {
  test('defaults fit the device; the help names them', () => {
    const wasm = readSettings([])!
    const js = readSettings(['--device', 'js'])!
    expect(wasm).toMatchObject({ device: 'wasm', data: null, steps: null, seed: 0 })
    expect(js.hidden).toBeLessThan(wasm.hidden)
    expect(HELP).toContain(`(default: ${wasm.hidden}; ${js.hidden})`)
    expect(HELP).toContain(`(default: ${wasm.seconds})`)
  })

  test('what is given goes before the defaults', () => {
    const given = ['--device=js', '--steps', '7', '--hidden', '9', '--lr', '0.25', '--momentum', '0', '--seed=-3', '--data', 'x.txt']
    expect(readSettings(given)).toMatchObject({
      device: 'js',
      steps: 7,
      hidden: 9,
      learningRate: 0.25,
      momentum: 0,
      seed: -3,
      data: 'x.txt',
    })
  })

  test('help', () => expect(readSettings(['--steps', 'x', '--help'])).toBeNull())

  test.each([
    [['--device', 'cuda'], '--device: expected one of cpu, wasm, blas, js'],
    [['--seconds', '0'], "--seconds: expected a positive number, got '0'"],
    [['--seconds', 'Infinity'], '--seconds: expected a positive number'],
    [['--steps', '1.5'], '--steps: expected a positive whole number'],
    [['--steps', ''], "--steps: expected a positive whole number, got ''"],
    [['--momentum', '1'], '--momentum: expected a number from 0 to below 1'],
    [['--seed', 'x'], '--seed: expected a whole number'],
    [['--speed', '9'], "Unknown option '--speed'"],
    [['file.txt'], "Unexpected argument 'file.txt'"],
  ])('%j is refused', (argv, message) => {
    expect(() => readSettings(argv)).toThrow(message)
  })
})
