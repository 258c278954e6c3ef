/**
 * Other versions of Node, to run tests on: npm has the binaries, each is fetched once into `.cache/node`. `test.mjs` asks for them; nothing else
 * here depends on which Node runs it.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { capture, explainInstall, installEnv, root, SetupError, timed } from './setup.mjs'

/** Versions in use above the oldest supported one; exact, so that a run means the same tomorrow. */
export const VERSIONS = { 22: '22.23.3', 24: '24.21.0', 26: '26.10.0' }

/** Path of a Node of that major version. @throws SetupError with a remedy, when npm does not deliver it */
export async function otherNode(major, say = console.log) {
  const version = VERSIONS[major]
  const folder = join(root, '.cache/node', version)
  const binary = join(folder, 'node_modules/node/bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if ((await versionOf(binary)) === version) return binary
  const done = timed(say, `set-up: fetching Node ${version} from the npm registry, about 120 MB`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  // The package is a script that fetches the binary of this platform.
  const args = ['install', '--no-save', '--no-package-lock', '--ignore-scripts=false', '--no-audit', '--no-fund', `node@${version}`]
  const { code, output } = await capture(npm, args, { cwd: folder, env: installEnv(say), shell: process.platform === 'win32' })
  if (code !== 0) throw new SetupError(explainInstall(output, code))
  const got = await versionOf(binary)
  if (got !== version) {
    throw new SetupError(
      `${relative(root, binary)} is ${got ?? 'missing'} instead of Node ${version}: npm did not run the package's script, or there is none for this platform.\n  Remedy: allow install scripts of the package 'node', or run the tests by a Node ${major} of your own.`,
    )
  }
  done()
  return binary
}

/** The environment in which `node` is that one, for what tests start by name. */
export function environmentOf(binary) {
  const key = Object.keys(process.env).find((name) => name.toUpperCase() === 'PATH') ?? 'PATH'
  return { [key]: [dirname(binary), process.env[key]].join(process.platform === 'win32' ? ';' : ':') }
}

async function versionOf(binary) {
  if (!existsSync(binary)) return null
  const { code, output } = await capture(binary, ['--version'])
  return code === 0 ? output.trim().slice(1) : null
}
