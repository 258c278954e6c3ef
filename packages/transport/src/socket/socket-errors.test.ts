/** Messages and remedies when a worker cannot connect or listen. */
import { expect, test } from '@jest/globals'
import { cannotListen, connectFailed } from './socket-errors.js'

const noFiles = (): Error => Object.assign(new Error('EMFILE'), { code: 'EMFILE' })

test('CLU-67 to listen, or to connect, without open files left: TOO_MANY_OPEN_FILES, or CONNECT_FAILED with the remedy of that', () => {
  expect(cannotListen('tcp://127.0.0.1:1', noFiles())).toMatchObject({ code: 'TOO_MANY_OPEN_FILES', op: 'listen' })
  expect(cannotListen('tcp://127.0.0.1:1', Object.assign(new Error('no'), { code: 'EACCES' }))).toMatchObject({ code: 'ADDRESS_INVALID' })
  const address = { kind: 'tcp', host: '127.0.0.1', port: 1 } as const
  const error = connectFailed("worker 'b'", [{ address, error: noFiles() }])
  expect(error.code).toBe('CONNECT_FAILED')
  expect(error.message).toMatch(/tcp:\/\/127\.0\.0\.1:1: this process may open no more files \(EMFILE\)\. .*ulimit -n/)
})
