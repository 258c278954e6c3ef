/** The file of a picture is looked at before the work. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { prepareOut } from './out-file.js'

const folder = mkdtempSync(join(tmpdir(), 'postgrad-out-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a folder and another format fail at once, and leave nothing', async () => {
  await expect(prepareOut(folder)).rejects.toMatchObject({ code: 'OUT_IS_A_FOLDER' })
  for (const name of ['x.png', 'x'])
    await expect(prepareOut(join(folder, 'new', name))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining("--out: expected a picture whose name ends in '.svg'"),
    })
  expect(existsSync(join(folder, 'new'))).toBe(false)
  await prepareOut(join(folder, 'new', 'x.svg'))
  expect(existsSync(join(folder, 'new'))).toBe(true)
})
