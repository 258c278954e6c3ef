/** A program's default export, its main, which `postgrad run` starts on every worker. */
import { fileURLToPath } from 'node:url'
import { PostgradError } from '@postgrad/base'
import { importModule, locateModule } from '@postgrad/base/internal'

/** The argument of a program's default export. */
export interface MainContext {
  /** The worker's name. */
  readonly name: string
  /** The worker's place among the cluster's workers when this began, 0…worldSize-1; a restart keeps it. Its id only while nobody was started again. */
  readonly rank: number
  /** How many workers the cluster has. */
  readonly worldSize: number
  /** The words after `--` on the command line. */
  readonly args: readonly string[]
}

/** The default export of a program that `postgrad run` starts on every worker. */
export type Main = (context: MainContext) => unknown

/** @throws MAIN_MISSING */
export function mainOf(module: Readonly<Record<string, unknown>>, url: string): Main {
  const main = module.default
  if (typeof main === 'function') return main as Main
  throw new PostgradError('MAIN_MISSING', {
    op: 'run',
    expected: 'a function as the default export',
    got: main === undefined ? 'none' : typeof main,
    remedy: 'Write `export default async function main({ name, rank, worldSize, args }) { … }` in the program.',
    values: { program: url },
  })
}

/**
 * Imports a program in this thread, as a worker's thread does, TypeScript too, and gives its default export: for a process that joins a group (`init`).
 * @param program a `file:` URL, or a path from the working directory
 * @throws (rejects) PROGRAM_NOT_FOUND, MAIN_MISSING, TYPESCRIPT_LOADER_MISSING, or whatever the program throws
 */
export async function importMain(program: URL | string): Promise<Main> {
  const { url, isThere, near } = locateModule(program)
  if (isThere) return mainOf(await importModule(url, null), url)
  throw new PostgradError('PROGRAM_NOT_FOUND', {
    op: 'program',
    expected: 'a file that is there, by its path or its file: URL',
    got: url.startsWith('file:') ? fileURLToPath(url) : url,
    remedy: `${near}Check the path, which counts from ${process.cwd()}.`,
    values: { program: url },
  })
}
