/**
 * Loads the library where it is one file, `library.cjs` (`scripts/library.mjs` makes it). Every door, for `import` and `require` alike, asks here, so that a thread
 * has one.
 *
 * A thread hands the code that V8 has compiled to threads that it starts: compiling is half of their time to load it. From 22.1 on Node can keep compiled code by itself
 * (NODE_COMPILE_CACHE); threads gained less than half as much by that. If a user gives Node a folder for that, the library's code is kept there, too, for the next process: Node itself
 * keeps only what its own loaders compile. V8 compiles a function when it is first called, so what is kept after the library was loaded lacks most of what a worker runs. A worker
 * replaces it (`keepCode`): in the next process a first pass takes 0.6 of the CPU time, and a hundred passes after it 0.8.
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
let compiled: Compiled | null = null
/** For a thread that took the text of the one that started it. */
let toKeep: (ToKeep & Pick<Compiled, 'script'>) | null = null
/** In a runner that may have no `import()`: with this `require` it loads, and compiles, what it is asked for. */
let required = false
/** This thread took the code of the one that started it. */
let isHanded = false

/** The text of the file, by a thread that has read it. */
interface Compiled {
  readonly script: import('node:vm').Script
  readonly changedMs: number
  readonly cache: Cache | null
  /** V8 took the code that was there. */
  readonly isKept: boolean
}

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
  if (handed?.changedMs === changedMs(from)) {
    const script = compile(from, handed.source, handed.code)
    isHanded = script.cachedDataRejected === false
    toKeep = handed.toKeep === null ? null : { ...handed.toKeep, script }
    return called(from, script)
  }
  compiled = compileRead(from, read(from))
  const { script, cache, isKept } = compiled
  const made = called(from, script)
  if (cache !== null && !isKept) keep(cache.file, script, LOADED)
  return made
}

function called(from: string, script: import('node:vm').Script): Library {
  const module = { exports: {} as Library }
  const call = script.runInThisContext() as (...args: readonly unknown[]) => void
  call(module.exports, nodeModule.createRequire(from), module, from, folder)
  return module.exports
}

/** With the code that was kept of it. */
function compileRead(from: string, { source, changedMs }: Read): Compiled {
  const cache = cacheOf(source)
  const kept = cached(cache)
  const script = compile(from, source, kept?.code ?? null)
  return { script, changedMs, cache, isKept: kept !== null && script.cachedDataRejected === false }
}

/** A file of a compile cache. */
interface Cache {
  readonly file: string
  /** Of V8 and its flags: with others it does not use the code. */
  readonly tag: number
}

/**
 * The file of a compile cache for the code of this library, in the folder that the user has given Node for that, before Node 22.1 as well; null: there is none. V8 itself compares the
 * length of the text alone, and files of different contents may have one time.
 */
function cacheOf(source: Uint8Array): Cache | null {
  const dir = nodeModule.getCompileCacheDir?.() ?? process.env.NODE_COMPILE_CACHE
  if (!dir || process.env.NODE_DISABLE_COMPILE_CACHE) return null
  try {
    const tag = versionTag()
    return { file: path.join(dir, `postgrad-${tag}-${digest(source).toString('hex')}`), tag }
  } catch {
    return null // a Node without this digest
  }
}

/** V8 crashes on code that was damaged, so the file begins with a digest of the rest. */
const DIGEST_BYTES = 32
/** The file's last byte says what had been called when the code was made: the top level alone, or a worker's functions as well. */
const LOADED = 0
const WORKED = 1

interface Kept {
  readonly code: Uint8Array
  readonly stage: number
}

/** Most threads need none, and it takes one 3 ms to load. */
const crypto = () => require('node:crypto') as typeof import('node:crypto')
const digest = (of: Uint8Array): Buffer => crypto().createHash('sha256').update(of).digest()
const OTHERS_WRITE = 0o022

/**
 * V8 runs it as it is, so the file must be this user's, and writable by nobody else. Mode and owner are those of the opened file: another may have its name by then.
 */
function cached(cache: Cache | null): Kept | null {
  if (cache === null) return null
  let file: number | null = null
  try {
    // A pipe of that name would wait for its writer, and a link may lead to any file.
    file = fs.openSync(cache.file, fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0))
    const { uid, mode } = fs.fstatSync(file)
    if (process.geteuid !== undefined && (uid !== process.geteuid() || (mode & OTHERS_WRITE) !== 0)) return null
    const kept = fs.readFileSync(file)
    const isWhole = digest(kept.subarray(DIGEST_BYTES)).equals(kept.subarray(0, DIGEST_BYTES))
    return isWhole ? { code: kept.subarray(DIGEST_BYTES, -1), stage: kept.at(-1)! } : null
  } catch {
    return null
  } finally {
    if (file !== null) fs.closeSync(file)
  }
}

/** As with Node's own cache: who cannot write there goes without. */
function keep(cache: string, script: import('node:vm').Script, stage: number): void {
  const contents = Buffer.concat([script.createCachedData(), Uint8Array.of(stage)])
  const part = `${cache}.${crypto().randomUUID()}`
  try {
    fs.mkdirSync(path.dirname(cache), { recursive: true, mode: 0o700 })
    removeParts(cache)
    fs.writeFileSync(part, Buffer.concat([digest(contents), contents]), { flag: 'wx', mode: 0o600 })
    fs.renameSync(part, cache)
  } catch {
    // Where the folder is a file, this throws, too.
    try {
      fs.rmSync(part, { force: true })
    } catch {}
  }
}

const PART_MS_MAX = 60_000

/** Removes what threads left that ended while they wrote: parts that are a minute old. */
function removeParts(cache: string): void {
  const dir = path.dirname(cache)
  for (const name of fs.readdirSync(dir)) {
    if (!name.startsWith(`${path.basename(cache)}.`)) continue
    const part = path.join(dir, name)
    const written = fs.statSync(part, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY
    if (written < Date.now() - PART_MS_MAX) fs.rmSync(part, { force: true })
  }
}

/**
 * Keeps the code with the functions that this thread has called, if the kept code lacks a worker's functions. Of the threads that another one starts, the first to come does so. It
 * takes some 15 ms, once for a version of the library and of Node.
 */
function keepCode(): void {
  if (toKeep !== null && Atomics.exchange(toKeep.isTaken, 0, 1) === 0) keep(toKeep.file, toKeep.script, WORKED)
  toKeep = null
}

/** What is to be kept when a worker has worked. */
interface ToKeep {
  readonly file: string
  /** Not 0: a thread has it. */
  readonly isTaken: Int32Array
}

/** Handed by a thread to those that it starts. */
interface Shared extends Pick<Cache, 'tag'> {
  readonly source: Uint8Array
  readonly code: Uint8Array
  /** V8 checks the length of the text alone: of another installation in the same place it would take the code for its own. */
  readonly changedMs: number
  readonly toKeep: ToKeep | null
}

interface Read {
  readonly source: Uint8Array
  readonly changedMs: number
}

const shared = (from: string): Shared | undefined => threads.getEnvironmentData(from) as unknown as Shared | undefined
const versionTag = (): number => (require('node:v8') as typeof import('node:v8')).cachedDataVersionTag()
const changedMs = (from: string): number => fs.statSync(from).mtimeMs

const HEAD = '(function (exports, require, module, __filename, __dirname) { '
/** The map is for debuggers. Not in the file itself: jest would read the map for each test file in which an error is made. */
const TAIL = '\n//# sourceMappingURL=library.cjs.map\n})'

/** The file as the bytes of a function, in memory that threads share: one that read it for itself would hold its 2.5 MB until its next long collection. */
function read(from: string): Read {
  const readMs = changedMs(from)
  const text = fs.readFileSync(from)
  const source = Buffer.from(new SharedArrayBuffer(HEAD.length + text.length + TAIL.length))
  source.write(HEAD, 'latin1')
  source.set(text, HEAD.length)
  source.write(TAIL, HEAD.length + text.length, 'latin1')
  return { source, changedMs: readMs }
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
  // Once more, since who starts no thread need not keep it.
  const text = read(file)
  if (compiled?.changedMs !== text.changedMs) compiled = compileRead(file, text)
  const { cache, isKept } = compiled
  const isOfTag = cache?.tag === tag
  const kept = isOfTag && isKept ? cached(cache) : null
  const made = kept?.code ?? compiled.script.createCachedData()
  const code = new Uint8Array(new SharedArrayBuffer(made.length))
  code.set(made)
  const toKeep = isOfTag && kept?.stage !== WORKED ? { file: cache.file, isTaken: new Int32Array(new SharedArrayBuffer(4)) } : null
  threads.setEnvironmentData(file, { source: text.source, code, changedMs: text.changedMs, tag, toKeep } satisfies Shared as never)
}

/** A module by its URL. A runner that had the library required has its own `require` for that, which compiles TypeScript, too. */
async function importUrl(from: string): Promise<unknown> {
  return required ? require(from.startsWith('file:') ? url.fileURLToPath(from) : from) : import(from)
}

module.exports = {
  load,
  shareCode,
  keepCode,
  importUrl,
  importJson: (from: string): Promise<unknown> => import(from, { with: { type: 'json' } }),
  /** Whether TypeScript is compiled before it comes here. */
  isRequired: () => required,
  /** Whether this thread took what another had compiled. */
  isShared: () => isHanded,
  /** The file that a module of the library is to think it is, which others are beside: 'cluster/worker/worker-entry.js'. */
  fileUrl: (place: string) => (folderUrl === null ? undefined : folderUrl + place),
}
