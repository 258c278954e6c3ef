/**
 * Makes a fresh clone ready: packages with the pinned pnpm, then the build. Every other script calls it first; it repeats nothing that
 * is done. Needs Node ≥ 20 and the npm registry, nothing else: no root, no global install, no terminal, no particular HOME.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** The last installation, inside of node_modules: deleting node_modules deletes it, too. */
const installStamp = join(root, 'node_modules/.cache/postgrad-install')
const buildStamp = join(root, 'node_modules/.cache/postgrad-build')

/** A failure that the reader can mend; shown without a stack. */
export class SetupError extends Error {}

/**
 * Installs and builds where needed. `say` gets one line per thing done, and one when nothing was to be done.
 * Throws SetupError with a remedy.
 */
export async function setup({ say = console.log, build = true } = {}) {
  checkNode()
  const installed = await install(say)
  const built = build && (await buildAll(say))
  if (!installed && !built) say('set-up: nothing to do')
}

/** Runs `setup` for a script: on a failure it prints the message (no stack where the reader can mend it) and ends the process. */
export async function setupOrExit(options) {
  try {
    await setup(options)
  } catch (error) {
    console.error(error instanceof SetupError ? `\nset-up failed: ${error.message}` : error)
    process.exit(1)
  }
}

function checkNode() {
  const major = Number(process.versions.node.split('.')[0])
  if (major >= 20) return
  throw new SetupError(
    `Node ${process.versions.node} is too old, 20 or newer is needed.\n  Remedy: install it from https://nodejs.org, or try once with: npx -p node@22 npm test`,
  )
}

function checkWritable() {
  try {
    accessSync(root, constants.W_OK)
  } catch (cause) {
    throw new SetupError(`${root} is not writable for this user.\n  Remedy: clone into a folder of your own, or change its owner.`, {
      cause,
    })
  }
}

// ---- packages ----

async function install(say) {
  const wanted = installKey()
  if (read(installStamp) === wanted) return false
  checkWritable()
  const pnpm = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).packageManager
  const done = timed(say, `set-up: installing packages with ${pnpm.replace('@', ' ')} from the npm registry`)
  const npx = process.platform === 'win32' ? 'npx.cmd' : 'npx'
  const args = ['--yes', '--prefer-offline', pnpm, 'install', '--frozen-lockfile', '--reporter=append-only']
  const { code, output } = await capture(npx, args, { env: installEnv(say), shell: process.platform === 'win32' })
  if (code !== 0) throw new SetupError(explainInstall(output, code))
  write(installStamp, wanted)
  done()
  return true
}

/** Everything that decides what node_modules holds. Node's version does not: all binaries in there speak Node-API, or are programs. */
function installKey() {
  const hash = createHash('sha256').update(process.platform + process.arch)
  const manifests = [root, ...projects()].map((folder) => relative(root, join(folder, 'package.json')))
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', ...manifests]) {
    const text = read(join(root, file))
    if (text !== null) hash.update(`${file}\0${text}\0`)
  }
  return hash.digest('hex')
}

/** For whatever asks the registry for packages. */
export function installEnv(say) {
  const env = { ...process.env, CI: 'true' } // pnpm asks nothing and never changes the lockfile
  // An unreachable registry is reported after seconds, not minutes. npm's own notices and its opinion of the user's settings are not ours.
  env.npm_config_fetch_retry_mintimeout ??= '1000'
  env.npm_config_fetch_retry_maxtimeout ??= '5000'
  env.npm_config_update_notifier = 'false'
  env.npm_config_loglevel = 'error'
  // Left by an outer `npx -p node@24 npm test`, it would be taken for the package that the inner npx should run.
  delete env.npm_config_package
  if (isWritableFolder(homedir())) return env
  // npx and pnpm keep their caches under HOME; npm has already set paths in a HOME that is not there.
  const home = join(root, '.cache/home')
  mkdirSync(home, { recursive: true })
  say(`set-up: HOME is not a writable folder, caches go to ${relative(root, home)}`)
  delete env.npm_config_cache
  delete env.npm_config_userconfig
  return { ...env, HOME: home, USERPROFILE: home }
}

/** The cause, and a remedy. */
export function explainInstall(output, code) {
  const tail = output.trimEnd().split('\n').slice(-15).join('\n    ')
  const because = (text, remedy) => `${text}\n  Remedy: ${remedy}\n  What it said:\n    ${tail}`
  if (
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED|ERR_PNPM_META_FETCH_FAIL/.test(output)
  )
    return because(
      'the npm registry cannot be reached.',
      'check the network, the proxy (HTTPS_PROXY) and `npm config get registry`, then run the same command again.',
    )
  if (/EACCES|EPERM|EROFS/.test(output))
    return because('no permission to write.', 'check who owns this folder and ~/.npm, then run the same command again.')
  if (/ENOSPC/.test(output)) return because('the disk is full.', 'free about 500 MB.')
  if (/ERR_PNPM_OUTDATED_LOCKFILE/.test(output))
    return because('pnpm-lock.yaml does not match a package.json.', 'npx pnpm install --no-frozen-lockfile, and commit pnpm-lock.yaml.')
  return because(`the package manager ended with code ${code}.`, 'read its message; deleting node_modules and running again is safe.')
}

// ---- build ----

/** `tsc -b`, then the WebAssembly kernels. Returns false when nothing was older than its sources. */
export async function buildAll(say = console.log) {
  const key = buildKey()
  if (read(buildStamp) === key) return false
  checkWritable()
  const done = timed(say, 'set-up: building (tsc -b, then the WebAssembly kernels)')
  prune()
  const tsc = await capture(process.execPath, [
    join(root, 'node_modules/typescript/bin/tsc'),
    '-b',
    '--pretty',
    String(process.stdout.isTTY === true),
  ])
  if (tsc.code !== 0) throw new SetupError(`the sources do not compile:\n${tsc.output}`)
  const kernels = join(root, 'scripts/build-kernels.mjs')
  if (existsSync(kernels)) {
    const result = await capture(process.execPath, [kernels])
    if (result.code !== 0) throw new SetupError(`the kernels do not compile (scripts/build-kernels.mjs):\n${result.output}`)
  }
  write(buildStamp, buildKey())
  done()
  return true
}

/** The last build: another text after every build. */
export function builtFrom() {
  return read(buildStamp)
}

/** Names, sizes and times of all sources and of all that was built from them: a deleted dist is noticed as an edited source is. */
export function buildKey() {
  const hash = createHash('sha256').update(read(installStamp) ?? '')
  for (const project of projects()) {
    for (const part of ['tsconfig.json', 'src', 'assembly', 'dist']) {
      for (const { path, stat } of walk(join(project, part))) hash.update(`${relative(root, path)} ${stat.size} ${stat.mtimeMs}\n`)
    }
  }
  for (const file of ['tsconfig.base.json', 'tsconfig.json', 'scripts/build-kernels.mjs']) hash.update(read(join(root, file)) ?? '')
  return hash.digest('hex')
}

/** Removes tsc's output of deleted sources: tsc would not, and jest would still run a deleted test. */
function prune() {
  for (const project of projects()) {
    for (const { path } of walk(join(project, 'dist'))) {
      if (!path.endsWith('.js.map')) continue // only tsc writes these, one for every output
      const stem = path.slice(0, -'.js.map'.length)
      const source = join(project, 'src', relative(join(project, 'dist'), stem))
      if (existsSync(`${source}.ts`) || existsSync(`${source}.tsx`)) continue
      for (const extension of ['.js', '.js.map', '.d.ts']) rmSync(stem + extension, { force: true })
    }
  }
}

/** The folders of all packages and apps, without other folders next to them. */
export function projects() {
  const found = ['packages', 'apps'].flatMap((group) => readdirSync(join(root, group)).map((name) => join(root, group, name)))
  return found.filter((folder) => existsSync(join(folder, 'package.json'))).sort()
}

// ---- small tools, shared with the other scripts ----

/** All files under `path` (or the file itself), in a fixed order. Nothing if it does not exist. */
export function* walk(path) {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return
  if (!stat.isDirectory()) return yield { path, stat }
  for (const name of readdirSync(path).sort()) yield* walk(join(path, name))
}

/** Says that something begins; the function returned says how long it took. A long wait is filled with a sign of life. */
export function timed(say, what) {
  const start = performance.now()
  const seconds = () => `${((performance.now() - start) / 1000).toFixed(1)} s`
  say(`${what} …`)
  const alive = setInterval(() => say(`  … still at it after ${seconds()}`), 20_000)
  alive.unref()
  return (word = 'done') => {
    clearInterval(alive)
    say(`  ${word} in ${seconds()}`)
  }
}

/** Runs a command without a stdin, and returns its exit code and what it wrote. */
export function capture(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawnWithUs(command, args, { cwd: root, ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8')
      stream.on('data', (text) => {
        output += text
      })
    }
    child.on('error', (cause) => {
      if (cause.code !== 'ENOENT') return reject(cause)
      reject(new SetupError(`${command} is not on the PATH.\n  Remedy: install Node with npm (https://nodejs.org).`, { cause }))
    })
    child.on('close', (code, signal) => resolve({ code: code ?? 1, signal, output }))
  })
}

const EXIT_BY_SIGNAL = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }
const isPosix = process.platform !== 'win32'
const running = new Set()

/**
 * Starts a child that ends, with all that it has started, when this process gets a signal: jest's workers would test on, and CI and editors
 * signal only the process that they know. So it leads a group of its own, which a terminal's Ctrl-C reaches through here.
 */
export function spawnWithUs(command, args, options) {
  const child = spawn(command, args, { ...options, detached: isPosix })
  if (running.size === 0) for (const signal of Object.keys(EXIT_BY_SIGNAL)) process.on(signal, endAll)
  running.add(child)
  const gone = () => {
    running.delete(child)
    if (running.size === 0) for (const signal of Object.keys(EXIT_BY_SIGNAL)) process.off(signal, endAll)
  }
  return child.once('exit', gone).once('error', gone)
}

/** Ends a child of `spawnWithUs` and what it has started. */
export function endTree(child) {
  if (!isPosix) child.kill('SIGKILL')
  else if (running.has(child) && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
}

function endAll(signal) {
  for (const child of running) endTree(child)
  process.exit(EXIT_BY_SIGNAL[signal])
}

export function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return null
    throw error
  }
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function isWritableFolder(path) {
  try {
    accessSync(path, constants.W_OK)
    return path !== '' && statSync(path).isDirectory()
  } catch {
    return false // a missing folder is an answer too
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await setupOrExit()
