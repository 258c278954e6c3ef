/** Writes a project into a folder that is new, or empty but for the `.git` of `git init`: all of it, or nothing. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Why a folder cannot be used; null: it can. */
export function refusal(folder: string): string | null {
  try {
    return readdirSync(folder).every((name) => name === '.git') ? null : 'is not empty'
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    return code === 'ENOTDIR' ? 'is not a folder' : `cannot be read (${message})`
  }
}

/** @throws the system's error. Files and folders that were made until then are removed. */
export function writeProject(folder: string, files: ReadonlyMap<string, string>): void {
  const made = mkdirSync(folder, { recursive: true })
  const written: string[] = []
  try {
    for (const [name, text] of files) {
      const path = join(folder, name)
      // Fails where another process has written meanwhile.
      writeFileSync(path, '', { flag: 'wx' })
      written.push(path)
      writeFileSync(path, text)
    }
  } catch (error) {
    for (const path of made === undefined ? written : [made]) rmSync(path, { recursive: true, force: true })
    throw error
  }
}
