/** Checks of a process's credential files, before it meets others. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { bridge, type CredentialsFiles } from './bridge.js'

const folder = mkdtempSync(join(tmpdir(), 'postgrad-bridge-'))
afterAll(() => rmSync(folder, { recursive: true }))
// Windows has no modes.
const posix = process.platform === 'win32' ? test.skip : test

posix.each<[string, (file: string, other: string) => CredentialsFiles]>([
  ['--key', (file) => ({ kind: 'key', file })],
  ['--tls-key', (key, other) => ({ kind: 'tls', ca: other, cert: other, key })],
])('CLI-61 %s: a file that others than its owner may read is not used', async (flag, files) => {
  const [file, other] = [join(folder, `file${flag}`), join(folder, 'other')]
  for (const path of [file, other]) writeFileSync(path, 'nothing that is used')
  const join_ = () => bridge.join({ rank: 1, worldSize: 2, initMethod: 'tcp://127.0.0.1:1', credentials: files(file, other) })
  for (const mode of [0o644, 0o640, 0o604, 0o620, 0o666]) {
    chmodSync(file, mode)
    const message = expect.stringContaining(`Run: chmod 600 '${file}'`)
    await expect(join_()).rejects.toMatchObject({ code: 'KEY_FILE_OPEN', values: { path: file, mode }, message })
  }
  for (const mode of [0o600, 0o400]) {
    chmodSync(file, mode)
    await expect(join_()).rejects.toMatchObject({ code: expect.stringMatching(/^(KEY_FILE|CREDENTIALS)_INVALID$/) })
  }
})
