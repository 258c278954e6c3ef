/** Tests the error when no more files can be opened: CLU-67. */
import { expect, test } from '@jest/globals'
import { PostgradError, tooManyOpenFiles } from './errors.js'
import { workerDied } from './worker-death.js'

const coded = (code: string, message: string): Error => Object.assign(new Error(message), { code })

test.each([
  ['a module', coded('EMFILE', "EMFILE: too many open files, open 'a.js'")],
  ['a thread that could not begin', coded('ERR_WORKER_INIT_FAILED', 'Worker initialization failure: EMFILE')],
  ['an error that lost its code on the way from a thread', new Error("EMFILE: too many open files, open 'a.js'")],
  [
    'the cause of another',
    new PostgradError('STORE_FILE_FAILED', { op: 'open', message: 'no', cause: coded('EMFILE', 'too many open files') }),
  ],
])('CLU-67 %s: TOO_MANY_OPEN_FILES, with what to do', (_, error) => {
  const said = tooManyOpenFiles('launch', error)
  expect(said).toMatchObject({ code: 'TOO_MANY_OPEN_FILES', cause: error, values: { code: 'EMFILE' } })
  expect(said!.message).toContain('ulimit -n')
  // Once: it may be met again on its way.
  expect(tooManyOpenFiles('join', new Error('x', { cause: said }))).toBe(said)
})

test('CLU-67 the machine’s own limit has another remedy, and other errors none', () => {
  expect(tooManyOpenFiles('launch', coded('ENFILE', 'file table overflow'))!.message).toContain('fs.file-max')
  for (const other of [
    undefined,
    null,
    'EMFILE',
    coded('ENOENT', 'no such file'),
    new Error('EMFILES'),
    { code: Object.create(null), message: {} },
  ])
    expect(tooManyOpenFiles('launch', other)).toBeNull()
})

test('CLU-67 a worker that died of it says what to do in the place of the usual remedy', () => {
  const thrown = coded('ERR_WORKER_INIT_FAILED', 'Worker initialization failure: EMFILE')
  const death = { worker: null, cause: 'uncaught-exception', detail: '', thrown } as const
  const error = workerDied('job', death, { remedy: 'Catch it there.' })
  expect(error).toMatchObject({ code: 'WORKER_DIED', cause: { code: 'TOO_MANY_OPEN_FILES', cause: thrown } })
  expect([error.message.includes('ulimit -n'), error.message.includes('Catch it there')]).toEqual([true, false])
})
