/**
 * The program as a worker loads it: a module that calls `expose`, and may have a default export that `postgrad run` starts on every worker.
 * TypeScript needs a loader before Node 22.18; it is registered only when the program is TypeScript, because it costs 160 ms.
 */
import nodeModule, { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { PostgradError } from '@postgrad/base'
import { resolveSync } from './typescript-format.js'

/** What the default export of a program gets. */
export interface MainContext {
  /** The worker's name. */
  readonly name: string
  /** The worker's number, 0…worldSize-1. */
  readonly rank: number
  readonly worldSize: number
  /** What stood behind `--` on the command line. */
  readonly args: readonly string[]
}

export type Main = (context: MainContext) => unknown

/** From here on Node strips types by itself. */
const NODE_STRIPS_TYPES = [22, 18] as const

/**
 * @param url `file:` URL of the program
 * @param typescript URL of `tsx/esm/api` as the launcher resolved it, or null
 * @throws TYPESCRIPT_LOADER_MISSING, or whatever the program throws while it is evaluated
 */
export async function importProgram(url: string, typescript: string | null): Promise<Readonly<Record<string, unknown>>> {
  if (isTypeScript(url)) await registerTypeScript(url, typescript)
  return (await import(url)) as Record<string, unknown>
}

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

export function isTypeScript(url: string): boolean {
  return /\.m?ts$/.test(new URL(url).pathname)
}

async function registerTypeScript(program: string, known: string | null): Promise<void> {
  const loader = typescriptLoader(program, known ?? resolveTsx(program), process.versions.node)
  if (loader === null) return
  const tsx = (await import(loader)) as { register: () => unknown }
  tsx.register()
  // After tsx, so that it is asked before it. Hooks of the thread itself (Node 22.15) are asked before those of the loader's thread.
  const { registerHooks } = nodeModule as { registerHooks?: (hooks: { resolve: typeof resolveSync }) => unknown }
  if (registerHooks !== undefined) registerHooks({ resolve: resolveSync })
  else nodeModule.register(new URL('./typescript-format.js', import.meta.url))
}

/**
 * What has to be imported before a TypeScript program: tsx where it is installed (it also finds `x.ts` under the name `x.js`), nothing where Node
 * strips types by itself.
 * @param tsx URL of `tsx/esm/api`, null if it is not installed
 * @throws TYPESCRIPT_LOADER_MISSING
 */
export function typescriptLoader(program: string, tsx: string | null, nodeVersion: string): string | null {
  if (tsx !== null || stripsTypes(nodeVersion)) return tsx
  throw new PostgradError('TYPESCRIPT_LOADER_MISSING', {
    op: 'launch',
    message: `the program is TypeScript, which Node ${nodeVersion} does not run by itself, and tsx is not installed`,
    remedy: `Install tsx (npm install --save-dev tsx), or use Node ${NODE_STRIPS_TYPES.join('.')} or later, or compile the program.`,
    values: { program },
  })
}

/** tsx beside the program, else beside this package: its ES module, since the CommonJS one, which `require` finds, does not start in a worker. */
function resolveTsx(program: string): string | null {
  for (const from of [program, import.meta.url]) {
    try {
      const require = createRequire(from)
      const { exports } = require('tsx/package.json') as { exports: { './esm/api': { import: { default: string } } } }
      return new URL(exports['./esm/api'].import.default, pathToFileURL(require.resolve('tsx/package.json'))).href
    } catch (error) {
      const code = (error as { code?: string }).code
      if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error
    }
  }
  return null
}

function stripsTypes(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > NODE_STRIPS_TYPES[0] || (major === NODE_STRIPS_TYPES[0] && minor >= NODE_STRIPS_TYPES[1])
}
