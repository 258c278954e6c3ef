/** Checks the tarball of `npm pack`: unpacked, it equals the packed folder, file by file, and has what its package.json names. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { capture, walk } from './setup.mjs'

/**
 * @param stage the folder that was packed
 * @param into an empty folder to unpack in
 * @returns what is wrong with it, a line each
 */
export async function wrongIn(tarball, stage, into) {
  mkdirSync(into, { recursive: true })
  const { code, output } = await capture('tar', ['-xzf', tarball, '-C', into])
  if (code !== 0) return [`it cannot be unpacked: ${output.trim()}`]
  const unpacked = join(into, 'package')
  const [meant, got] = [filesOf(stage), filesOf(unpacked)]
  const differ = [...meant].filter(([path, file]) => got.has(path) && !readFileSync(got.get(path)).equals(readFileSync(file)))
  return [
    ...[...meant.keys()].filter((path) => !got.has(path)).map((path) => `${path} is missing`),
    ...[...got.keys()].filter((path) => !meant.has(path)).map((path) => `${path} is too much`),
    ...differ.map(([path]) => `${path} has other bytes`),
    ...named(JSON.parse(readFileSync(join(stage, 'package.json'), 'utf8')))
      .filter((path) => !got.has(path))
      .map((path) => `${path} is named by package.json, and missing`),
  ]
}

/** By their path from the folder. */
function filesOf(folder) {
  return new Map([...walk(folder)].map(({ path }) => [relative(folder, path).split(sep).join('/'), path]))
}

/** Every file that package.json has a door for. */
function named({ main, bin, exports }) {
  const paths = (value) => (typeof value === 'string' ? [value] : Object.values(value ?? {}).flatMap(paths))
  return [...new Set(paths([main, bin, exports]))].map((path) => path.replace(/^\.\//, ''))
}
