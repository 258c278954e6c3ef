/** How a new project names postgrad: as the installation does from which the command runs, so that both have the same version. */
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A version, a tag or an address, which mean the same from every folder; or a path. */
export type Source = { readonly spec: string } | { readonly path: string }

/** The first package.json that names postgrad, upwards from these folders in turn. Null: none does, or in a way that means something in its own workspace only. */
export function installedAs(starts: readonly string[]): Source | null {
  for (const start of starts) {
    for (const folder of upwards(start)) {
      const spec = specIn(join(folder, 'package.json'))
      if (spec !== null) return sourceOf(spec, folder)
    }
  }
  return null
}

function* upwards(start: string): Iterable<string> {
  for (let folder = resolve(start); ; folder = dirname(folder)) {
    yield folder
    if (folder === dirname(folder)) return
  }
}

function specIn(path: string): string | null {
  if (!existsSync(path)) return null
  try {
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>
    const spec = ['dependencies', 'devDependencies', 'optionalDependencies'].map((kind) => manifest[kind]?.postgrad).find(Boolean)
    return typeof spec === 'string' ? spec : null
  } catch {
    return null // Not JSON, or not readable: it names nothing.
  }
}

/** @param folder of the package.json, from which a path is meant */
function sourceOf(spec: string, folder: string): Source | null {
  if (spec.startsWith('file://')) return ofUrl(spec)
  const path =
    /^(?:file|link|portal):(.*)$/.exec(spec)?.[1] ?? (/^(\.{0,2}|~)[/\\]|^[a-z]:[/\\]|^[^:]*\.(tgz|tar\.gz)$/i.test(spec) ? spec : null)
  if (path !== null)
    return {
      path: resolve(
        folder,
        path.replace(/^~(?=[/\\])/, () => homedir()),
      ),
    }
  return /^(workspace|catalog|patch):/.test(spec) ? null : { spec }
}

/** Null: the URL names no file, as `file://../x.tgz`, in which `..` is a host. */
function ofUrl(url: string): Source | null {
  try {
    return { path: fileURLToPath(url) }
  } catch {
    return null
  }
}

/** For the package.json in `folder`. npm counts `..` from the folder's real place, so a link in either path is followed first. */
export function dependencyIn(folder: string, source: Source): string {
  if ('spec' in source) return source.spec
  // The file's own name stays: that of the file it may link to need not end in .tgz.
  const path = join(real(dirname(source.path)), basename(source.path))
  return `file:${relative(real(folder), path).split(sep).join('/')}`
}

/** A path without links. The part that does not exist yet has none. */
function real(path: string): string {
  return existsSync(path) || path === dirname(path) ? realpathSync(path) : join(real(dirname(path)), basename(path))
}
