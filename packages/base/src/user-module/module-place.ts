/** Finds the file of a user's module by a URL or a path, with TypeScript's own rules for file extensions. `user-module.ts` then imports it. */
import { readdirSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { PostgradError } from '../errors.js'

/**
 * The extensions to try if no file has that name. './program.js' is program.ts while it has not been compiled, as in imports. './program.ts' is its compiled file, since
 * a compiler changes the names in imports (rewriteRelativeImportExtensions), and not those in `new URL()`.
 */
const INSTEAD: Readonly<Record<string, readonly string[]>> = {
  js: ['ts'],
  mjs: ['mts'],
  ts: ['js', 'mjs', 'cjs'],
  mts: ['mjs'],
  cts: ['cjs'],
}
const MODULE = /\.([cm]?[jt]s)$/

export interface ModulePlace {
  readonly url: string
  /** Whether the file exists. */
  readonly isThere: boolean
  /** For an error: "Next to it is program.mjs. ", or ''. */
  readonly near: string
}

/**
 * The file of a URL, or a path from the working directory.
 * @throws INVALID_ARGUMENT
 */
export function locateModule(module: URL | string): ModulePlace {
  if (typeof module !== 'string' && typeof (module as URL | undefined)?.href !== 'string') {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'module',
      expected: 'a URL, or a path',
      got: module === null ? 'null' : typeof module,
      remedy: "new URL('./program.js', import.meta.url) names a file in the folder of the running one.",
    })
  }
  const url = typeof module !== 'string' ? module : module.startsWith('file:') ? new URL(module) : pathToFileURL(resolve(module))
  const { href } = url
  if (url.protocol !== 'file:') return { url: href, isThere: false, near: '' }
  const ends = INSTEAD[MODULE.exec(href)?.[1] ?? ''] ?? []
  for (const one of [href, ...ends.map((end) => href.replace(MODULE, `.${end}`))])
    if (statSync(fileURLToPath(one), { throwIfNoEntry: false })?.isFile()) return { url: one, isThere: true, near: '' }
  const names = namesLike(fileURLToPath(url))
  return { url: href, isThere: false, near: names.length === 0 ? '' : `Next to it is ${names.join(', ')}. ` }
}

/** The modules in that folder with its name and any extension: './program' may mean each of them. */
function namesLike(path: string): string[] {
  const stem = basename(path).replace(MODULE, '')
  try {
    return readdirSync(dirname(path)).filter((name) => MODULE.test(name) && name.replace(MODULE, '') === stem)
  } catch {
    return [] // no such folder
  }
}
