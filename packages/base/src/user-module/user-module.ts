/**
 * Imports a user's modules by URL: a cluster's program, a dataset that workers load. Before Node 22.18, TypeScript needs tsx, which takes a thread
 * some 0.3 s. Later versions strip types by themselves in a third of that; from Node 24 on, only code that Node cannot load (enums, aliases of a tsconfig) needs tsx.
 */
import { realpathSync, statSync } from 'node:fs'
import nodeModule, { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import { PostgradError, tooManyOpenFiles } from '../errors.js'
import { importUrl, isCompiled, readByLoaders } from '../library-file.js'
import { whileLoading } from '../loading.js'
import { ownFile } from '../own-file.js'
import { resolveSync } from '../typescript-format.js'
import { whileItCanEnd } from './import-watch.js'
import { sayDoor } from './wrong-door.js'

/** From here on Node strips types by itself. */
const NODE_STRIPS_TYPES = [22, 18] as const
/** Node's codes for a program that needs more, before any of it runs. */
const NEEDS_MORE = ['ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX', 'ERR_MODULE_NOT_FOUND', 'ERR_UNSUPPORTED_DIR_IMPORT']

/**
 * @param url `file:` URL of the module
 * @param typescript URL of `tsx/esm/api` if it is known, else null
 * @throws TYPESCRIPT_LOADER_MISSING, THREADS_WHILE_LOADING, MODULE_NEVER_LOADED, TOO_MANY_OPEN_FILES, or whatever the module throws while it is evaluated
 */
export async function importModule(url: string, typescript: string | null): Promise<Readonly<Record<string, unknown>>> {
  const load = async () => {
    try {
      return await importUrl<Record<string, unknown>>(url)
    } catch (error) {
      await sayDoor(error, url)
      throw tooManyOpenFiles('import', error) ?? error
    }
  }
  return await whileItCanEnd(url, () =>
    whileLoading(url, isTypeScript(url) && !isCompiled() ? () => loadTypeScript(url, typescript, load) : load),
  )
}

async function loadTypeScript<T>(url: string, known: string | null, load: () => Promise<T>): Promise<T> {
  const { node } = process.versions
  if (known === null && loadsTwice(node)) {
    registerResolve()
    try {
      return await load()
    } catch (error) {
      const loader = NEEDS_MORE.includes((error as { code?: string }).code ?? '') ? resolveTsx(url) : null
      if (loader === null) throw error
      await registerOnce(loader)
      return load()
    }
  }
  // A loader of the thread's command line, such as `--import @swc-node/register/esm-register` or `--loader ts-node/esm`.
  if (known === null && !stripsTypes(node) && (await readByLoaders(url))) return load()
  const loader = known ?? resolveTsx(url)
  if (loader !== null) await registerOnce(loader)
  else if (stripsTypes(node)) registerResolve()
  else throw loaderMissing(url, node)
  return load()
}

/** Whether a module that could not be read may be loaded by another loader: Node 22 remembers what it could not read. */
const loadsTwice = (version: string): boolean => Number.parseInt(version, 10) >= 24

/** Whether it is the script that Node was started with, on the thread that runs it. While that script awaits something, an import of it waits for its end. */
export function isScript(url: string): boolean {
  const script = process.argv[1]
  return (
    isMainThread &&
    script !== undefined &&
    statSync(script, { throwIfNoEntry: false }) !== undefined &&
    pathToFileURL(realpathSync(script)).href === url
  )
}

export function isTypeScript(url: string): boolean {
  return /\.m?ts$/.test(new URL(url).pathname)
}

/** By the loader's URL. All code of a thread shares its loaders: registered again they would form a chain, which each import walks. */
const registered = new Map<string, Promise<void>>()

async function registerOnce(loader: string): Promise<void> {
  let done = registered.get(loader)
  if (done === undefined) {
    done = register(loader)
    registered.set(loader, done)
  }
  await done
}

async function register(loader: string): Promise<void> {
  const tsx = await importUrl<{ register: () => unknown }>(loader)
  tsx.register()
  // After tsx, so that it is asked before it. Hooks of the thread itself (Node 22.15) are asked before those of the loader's thread.
  if (!registerResolve()) nodeModule.register(ownFile('import', 'base', 'typescript-format.js'))
}

let resolves = false

/** Returns false where this Node lets no thread resolve by itself. */
function registerResolve(): boolean {
  const { registerHooks } = nodeModule as { registerHooks?: (hooks: { resolve: typeof resolveSync }) => unknown }
  if (registerHooks === undefined) return false
  if (!resolves) registerHooks({ resolve: resolveSync })
  resolves = true
  return true
}

/** Of a Node that strips no types, where tsx is not installed. */
export function loaderMissing(program: string, nodeVersion: string): PostgradError {
  return new PostgradError('TYPESCRIPT_LOADER_MISSING', {
    op: 'import',
    message: `the module is TypeScript, which Node ${nodeVersion} does not run by itself, and tsx is not installed`,
    remedy: `Install tsx (npm install --save-dev tsx), or start node with --import of another loader, or use Node ${NODE_STRIPS_TYPES.join('.')} or later, or compile the module.`,
    values: { program },
  })
}

/** tsx as the module finds it, else this package: its ES module, since the CommonJS one, which `require` finds, does not start in a worker. */
function resolveTsx(program: string): string | null {
  for (const from of [program, import.meta.url]) {
    // Unknown in a bundle of the user's.
    if (from === undefined) continue
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

/** Whether that Node strips types by itself. */
export function stripsTypes(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > NODE_STRIPS_TYPES[0] || (major === NODE_STRIPS_TYPES[0] && minor >= NODE_STRIPS_TYPES[1])
}
