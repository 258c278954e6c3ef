/** Checks the tarball of `npm pack`: unpacked, it equals the packed folder, file by file, and has the files that its package.json and its source-map comments name. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join, posix, relative, sep } from 'node:path'
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
    ...[...got].flatMap(([path, file]) =>
      mapsOf(path, file)
        .filter((map) => !got.has(map))
        .map((map) => `${path} names ${map}, which is missing`),
    ),
  ]
}

/** By their path from the folder. */
function filesOf(folder) {
  return new Map([...walk(folder)].map(({ path }) => [relative(folder, path).split(sep).join('/'), path]))
}

/** The maps that a file names for debuggers. */
function mapsOf(path, file) {
  if (!/\.[cm]?js$/.test(path)) return []
  const names = [...readFileSync(file, 'utf8').matchAll(/^\/\/# sourceMappingURL=(?!data:)(\S+)$/gm)].map(([, name]) => name)
  return names.map((name) => posix.join(posix.dirname(path), name))
}

/** Every file that package.json has a door for. */
function named({ main, bin, exports }) {
  const paths = (value) => (typeof value === 'string' ? [value] : Object.values(value ?? {}).flatMap(paths))
  return [...new Set(paths([main, bin, exports]))].map((path) => path.replace(/^\.\//, ''))
}
