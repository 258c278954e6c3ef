/** Where a picture goes: looked at first of all, so that a wrong path is heard of before the work. */
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
