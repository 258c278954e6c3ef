/** The file of a picture: checked before the work, so that a wrong path fails at once. */
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { PostgradError } from 'postgrad'

/** @throws OUT_IS_A_FOLDER, or the system's error */
export async function prepareOut(out: string): Promise<void> {
  await mkdir(dirname(out), { recursive: true })
  const found = await stat(out).catch(() => null)
  if (found?.isDirectory() !== true) return
  throw new PostgradError('OUT_IS_A_FOLDER', { op: '--out', message: `${out} is a folder`, remedy: 'Name a file in it.', values: { out } })
}
