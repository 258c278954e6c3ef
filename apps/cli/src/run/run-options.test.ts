/** Options of `postgrad run` that go together and those that do not, and the exit codes of errors. */
import { describe, expect, test } from '@jest/globals'
import { PostgradError } from 'postgrad'
import type { Place } from '../rendezvous/launcher-env.js'
import { codeOfRun, codeOfStart } from './exit-code.js'
import { checkTogether, namesOf, networkOf, type RunOptions } from './run-options.js'

const PLACE: Place = { rank: 0, worldSize: 2, localRank: null, master: { host: 'a', port: 1 }, restarts: 0, source: 'flags' }

describe('options together', () => {
  test.each<[RunOptions, Place | null]>([
    [{}, null],
    [{ workers: 4, processes: 2, joinTimeout: 5 }, null],
    [{ key: 'k', role: 'r', bind: '0.0.0.0', advertise: 'h', ports: [1, 2], joinTimeout: 5 }, PLACE],
    [{ tlsCert: 'c', tlsKey: 'k', tlsCa: 'a' }, PLACE],
    [{ restart: 'all', maxRestarts: 2 }, null],
    [{ restart: 'none' }, PLACE],
    [{ workers: ['ps', 'trainer'], key: 'k' }, PLACE],
    [{ workers: 2 }, PLACE],
  ])('CLI-6 %j are fine', (options, place) => {
    expect(() => checkTogether(options, place)).not.toThrow()
  })

  test.each<[RunOptions, Place | null, RegExp]>([
    [{ maxRestarts: 2 }, null, /--max-restarts needs --restart/],
    [{ maxRestarts: 2, restart: 'none' }, null, /--max-restarts needs --restart/],
    [{ key: 'k', tlsCert: 'c', processes: 1 }, null, /--key and --tls-cert/],
    [{ role: 'r', processes: 1 }, null, /pass --key FILE as well/],
    [{ tlsCert: 'c', tlsKey: 'k', processes: 1 }, null, /belong together/],
    [{ workers: 2, processes: 3 }, null, /--processes 3 is more than there are workers: 2/],
    [{ processes: 2 }, null, /more than there are workers: 1/],
    [{ key: 'k' }, null, /--key is for processes that meet others/],
    [{ remoteStacks: false }, null, /--no-remote-stacks is for processes that meet others/],
    [{ remoteStacks: true }, null, /--remote-stacks is for processes that meet others/],
    [{ bind: '0.0.0.0' }, null, /--bind is for processes that meet others/],
    [{ processes: 2 }, PLACE, /--processes starts processes, and --rank say/],
    [{ restart: 'all' }, { ...PLACE, source: 'slurm' }, /the variables of slurm say.*--launcher none/],
    [{ workers: 3 }, PLACE, /--workers has 3, and --rank says that there are 2/],
    [{ workers: ['a'] }, { ...PLACE, source: 'torchrun' }, /--workers has 1.*variables of torchrun.*--launcher none/],
  ])('CLI-6 %j (%j) are refused', (options, place, message) => {
    expect(() => checkTogether(options, place)).toThrow(
      expect.objectContaining({ code: 'OPTIONS_CONFLICT', message: expect.stringMatching(message) }),
    )
  })

  test('CLI-6 names: one, a count, a list, as many as there are ranks', () => {
    expect(namesOf(undefined, null)).toEqual(['worker0'])
    expect(namesOf(2, null)).toEqual(['worker0', 'worker1'])
    expect(namesOf(['a'], null)).toEqual(['a'])
    expect(namesOf(undefined, PLACE)).toEqual(['worker0', 'worker1'])
  })

  test('CLI-6 credentials are files, and no secret passes through', () => {
    expect(networkOf({})).toEqual({})
    expect(networkOf({ key: 'k', role: 'r', ports: [1, 2] })).toEqual({ credentials: { kind: 'key', file: 'k', role: 'r' }, ports: [1, 2] })
    expect(networkOf({ tlsCert: 'c', tlsKey: 'k', tlsCa: 'a', bind: 'b', advertise: 'h' })).toEqual({
      credentials: { kind: 'tls', cert: 'c', key: 'k', ca: 'a' },
      bind: 'b',
      advertise: 'h',
    })
  })
})

describe('exit codes', () => {
  const error = (code: string, cause?: unknown): PostgradError => new PostgradError(code, { op: 'x', message: 'x', cause })

  test('CLI-10 of a start: what is wrong with the command line, through causes, and all else', () => {
    expect(codeOfStart(error('OPTIONS_CONFLICT'))).toBe(2)
    expect(codeOfStart(error('LAUNCH_FAILED', error('WORKER_NAME_DUPLICATE')))).toBe(2)
    expect(codeOfStart(error('LAUNCH_FAILED', error('PROGRAM_NOT_FOUND')))).toBe(3)
    expect(codeOfStart(new Error('x'))).toBe(3)
    expect(codeOfStart(null)).toBe(3)
  })

  test('CLI-10 of a main: a death is not a throw, also as the cause of a typed error; what the program makes of it is', () => {
    expect(codeOfRun(error('WORKER_DIED'))).toBe(4)
    expect(codeOfRun(error('RUN_TIMEOUT'))).toBe(1)
    expect(codeOfRun(new Error('x', { cause: error('WORKER_DIED') }))).toBe(1)
    expect(codeOfRun(error('GROUP_BROKEN', error('WORKER_DIED')))).toBe(4)
    expect(codeOfRun('text')).toBe(1)
    expect(codeOfRun(error('MAIN_MISSING'))).toBe(3)
  })
})
