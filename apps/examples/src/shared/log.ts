/** The log of a run, next to its picture: JSON lines, one a step. */
import { writeFile } from 'node:fs/promises'
import { join, parse } from 'node:path'

/** `out/ddp.svg` → `out/ddp.jsonl`. Gives its path. */
export async function writeLog(picture: string, rows: readonly object[]): Promise<string> {
  const { dir, name } = parse(picture)
  const path = join(dir, `${name}.jsonl`)
  await writeFile(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  return path
}
