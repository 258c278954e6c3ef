/**
 * Loads the library where it is one file, `library.cjs` (`scripts/library.mjs` makes it). Every door, for `import` and `require` alike, asks here, so that a thread
 * has one.
 *
 * A thread hands the code that V8 has compiled to threads that it starts: compiling is half of their time to load it. From 22.1 on Node can keep compiled code by itself
 * (NODE_COMPILE_CACHE); threads gained less than half as much by that. If a user gives Node a folder for that, the library's code is kept there, too, for the next process: Node itself
 * keeps only what its own loaders compile.
 */
const nodeModule = require('node:module') as typeof import('node:module') & { readonly getCompileCacheDir?: () => string | undefined }
const fs = require('node:fs') as typeof import('node:fs')
const path = require('node:path') as typeof import('node:path')
const url = require('node:url') as typeof import('node:url')
const vm = require('node:vm') as typeof import('node:vm')
const threads = require('node:worker_threads') as typeof import('node:worker_threads')

type Library = Readonly<Record<string, Readonly<Record<string, unknown>>>>

const NAME = 'load.cjs'
/** In a bundle of the user's, of which this is a part, the file is another one, or nobody knows which. */
const isHere = typeof __filename === 'string' && path.basename(__filename) === NAME && fs.existsSync(path.join(__dirname, '../library.cjs'))
const folder = isHere ? path.dirname(__dirname) : null
const file = folder === null ? null : path.join(folder, 'library.cjs')
/** Every module of the library asks for its place, so the folder becomes a URL once. */
const folderUrl = folder === null ? null : url.pathToFileURL(folder + path.sep).href
/** jest runs modules with globals of its own: there its own `require` loads the library. */
const isNodes = vm.runInThisContext('Array') === Array

let library: Library | null = null
let script: import('node:vm').Script | null = null
/** When the file had changed that was read last: `script` is of it. */
let readMs: number | null = null
/** In a runner that may have no `import()`: with this `require` it loads, and compiles, what it is asked for. */
let required = false
/** This thread took the code of the one that started it. */
let isHanded = false

/** All doors by name. @param byRequire by a door of CommonJS */
function load(byRequire = false): Library {
  if (library === null) {
    required = byRequire && !isNodes
    library = file !== null && isNodes ? run(file) : (require('../library.cjs') as Library)
  }
  return library
}

function run(from: string): Library {
  const handed = shared(from)
  const isOfFile = handed?.changedMs === changedMs(from)
  const source = isOfFile ? handed!.source : read(from)
  const cache = isOfFile ? null : cacheOf(source)
  script = compile(from, source, isOfFile ? handed!.code : cached(cache))
  isHanded = isOfFile && script.cachedDataRejected === false
  const module = { exports: {} as Library }
  const call = script.runInThisContext() as (...args: readonly unknown[]) => void
  call(module.exports, nodeModule.createRequire(from), module, from, folder)
  if (cache !== null && script.cachedDataRejected !== false) keep(cache, script)
  return module.exports
}

/**
 * The file of a compile cache for the code of this library, in the folder that the user has given Node for that, before Node 22.1 as well; null: there is none. V8 itself compares the
 * length of the text alone, and files of different contents may have one time.
 */
function cacheOf(source: Uint8Array): string | null {
  const dir = nodeModule.getCompileCacheDir?.() ?? process.env.NODE_COMPILE_CACHE
  if (!dir || process.env.NODE_DISABLE_COMPILE_CACHE) return null
  try {
    return path.join(dir, `postgrad-${versionTag()}-${digest(source).toString('hex')}`)
  } catch {
    return null // a Node without this digest
  }
}

/** V8 crashes on code that was damaged, so the file begins with a digest. */
const DIGEST_BYTES = 32
/** Most threads need none, and it takes one 3 ms to load. */
const crypto = () => require('node:crypto') as typeof import('node:crypto')
const digest = (of: Uint8Array): Buffer => crypto().createHash('sha256').update(of).digest()
const OTHERS_WRITE = 0o022

/**
 * V8 runs it as it is, so the file must be this user's, and writable by nobody else. Mode and owner are those of the opened file: another may have its name by then.
 */
function cached(cache: string | null): Uint8Array | null {
  if (cache === null) return null
  let file: number | null = null
  try {
    // A pipe of that name would wait for its writer, and a link may lead to any file.
    file = fs.openSync(cache, fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0))
    const { uid, mode } = fs.fstatSync(file)
    if (process.geteuid !== undefined && (uid !== process.geteuid() || (mode & OTHERS_WRITE) !== 0)) return null
    const kept = fs.readFileSync(file)
    const code = kept.subarray(DIGEST_BYTES)
    return digest(code).equals(kept.subarray(0, DIGEST_BYTES)) ? code : null
  } catch {
    return null
  } finally {
    if (file !== null) fs.closeSync(file)
  }
}

/** As with Node's own cache: who cannot write there goes without. */
function keep(cache: string, of: import('node:vm').Script): void {
  const code = of.createCachedData()
  const part = `${cache}.${crypto().randomUUID()}`
  try {
    fs.mkdirSync(path.dirname(cache), { recursive: true, mode: 0o700 })
    fs.writeFileSync(part, Buffer.concat([digest(code), code]), { flag: 'wx', mode: 0o600 })
    fs.renameSync(part, cache)
  } catch {
    fs.rmSync(part, { force: true })
  }
}

/** Handed by a thread to those that it starts. */
interface Shared {
  readonly source: Uint8Array
  readonly code: Uint8Array
  /** V8 checks the length of the text alone: of another installation in the same place it would take the code for its own. */
  readonly changedMs: number
  /** Of V8 and its flags: with others it does not use the code. */
  readonly tag: number
}

const shared = (from: string): Shared | undefined => threads.getEnvironmentData(from) as unknown as Shared | undefined
const versionTag = (): number => (require('node:v8') as typeof import('node:v8')).cachedDataVersionTag()
const changedMs = (from: string): number => fs.statSync(from).mtimeMs

const HEAD = '(function (exports, require, module, __filename, __dirname) { '
/** The map is for debuggers. Not in the file itself: jest would read the map for each test file in which an error is made. */
const TAIL = '\n//# sourceMappingURL=library.cjs.map\n})'

/** The file as the bytes of a function, in memory that threads share: one that read it for itself would hold the 1.4 MB until its next long collection. */
function read(from: string): Uint8Array {
  readMs = changedMs(from)
  const text = fs.readFileSync(from)
  const source = Buffer.from(new SharedArrayBuffer(HEAD.length + text.length + TAIL.length))
  source.write(HEAD, 'latin1')
  source.set(text, HEAD.length)
  source.write(TAIL, HEAD.length + text.length, 'latin1')
  return source
}

/** Made of bytes at once the text lies outside of V8's heap, and once. Put together from strings it would be copied, and both copies kept for long. */
function compile(from: string, source: Uint8Array, code: Uint8Array | null): import('node:vm').Script {
  const text = Buffer.from(source.buffer, source.byteOffset, source.length).toString('latin1')
  return new vm.Script(text, { filename: from, ...(code === null ? {} : { cachedData: code }) })
}

/** To be called before a thread is started. What V8 cannot use, it leaves: the thread compiles then. */
function shareCode(): void {
  if (file === null) return
  const tag = versionTag()
  if (shared(file)?.tag === tag) return
  const since = readMs
  // Once more, since who starts no thread need not keep it.
  const source = read(file)
  if (script === null || readMs !== since) script = compile(file, source, null)
  const made = script.createCachedData()
  const code = new Uint8Array(new SharedArrayBuffer(made.length))
  code.set(made)
  threads.setEnvironmentData(file, { source, code, changedMs: readMs!, tag })
}

/** A module by its URL. A runner that had the library required has its own `require` for that, which compiles TypeScript, too. */
async function importUrl(from: string): Promise<unknown> {
  return required ? require(from.startsWith('file:') ? url.fileURLToPath(from) : from) : import(from)
}

module.exports = {
  load,
  shareCode,
  importUrl,
  importJson: (from: string): Promise<unknown> => import(from, { with: { type: 'json' } }),
  /** Whether TypeScript is compiled before it comes here. */
  isRequired: () => required,
  /** Whether this thread took what another had compiled. */
  isShared: () => isHanded,
  /** The file that a module of the library is to think it is, which others are beside: 'cluster/worker/worker-entry.js'. */
  fileUrl: (place: string) => (folderUrl === null ? undefined : folderUrl + place),
}
