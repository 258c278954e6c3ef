/** The file of a picture: checked before the work, so that a wrong path fails at once. */
import { mkdir, stat } from 'node:fs/promises'
import { dirname, extname } from 'node:path'
import { PostgradError } from 'postgrad'

/** @throws OUT_IS_A_FOLDER, INVALID_ARGUMENT (another format than SVG), or the system's error */
export async function prepareOut(out: string): Promise<void> {
  const found = await stat(out).catch(() => null)
  if (found?.isDirectory() === true)
    throw new PostgradError('OUT_IS_A_FOLDER', {
      op: '--out',
      message: `${out} is a folder`,
      remedy: 'Name a file in it.',
      values: { out },
    })
  if (extname(out).toLowerCase() !== '.svg')
    throw new PostgradError('INVALID_ARGUMENT', { op: '--out', expected: "a picture whose name ends in '.svg'", got: `'${out}'` })
  await mkdir(dirname(out), { recursive: true })
}
