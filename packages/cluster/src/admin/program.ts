/** A program's default export, its main, which `postgrad run` starts on every worker. */
import { fileURLToPath } from 'node:url'
import { PostgradError } from '@postgrad/base'
import { importModule, locateModule } from '@postgrad/base/internal'

/** The argument of a program's default export. */
export interface MainContext {
  /** The worker's name. */
  readonly name: string
  /** The worker's place among the cluster's workers when main began, from 0 to worldSize−1. A restarted worker keeps its rank, but has a new id. */
  readonly rank: number
  /** How many workers the cluster had when main began. */
  readonly worldSize: number
  /** The arguments: those after `--` on the command line of `postgrad run`, or those that `runMain` was given. */
  readonly args: readonly string[]
}

/** The default export of a program, which `postgrad run` and `controller.runMain` run on workers. */
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
 * Imports a program in this thread and resolves with its default export, for a process that joins a group by `init`. The program may be TypeScript.
 * @param program a `file:` URL, or a path from the working directory
 * @throws PROGRAM_NOT_FOUND, MAIN_MISSING, TYPESCRIPT_LOADER_MISSING, or the error that the program throws
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
