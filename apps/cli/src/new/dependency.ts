/** How a new project names postgrad: as the installation does from which the command runs, so that both have the same version. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
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
  if (spec.startsWith('file://')) return { path: fileURLToPath(spec) }
  const path =
    /^(?:file|link|portal):(.*)$/.exec(spec)?.[1] ?? (/^\.{0,2}[/\\]|^[a-z]:[/\\]|^[^:]*\.(tgz|tar\.gz)$/i.test(spec) ? spec : null)
  if (path !== null) return { path: resolve(folder, path) }
  return /^(workspace|catalog|patch):/.test(spec) ? null : { spec }
}

/** For the package.json in `folder`. */
export function dependencyIn(folder: string, source: Source): string {
  return 'spec' in source ? source.spec : `file:${relative(folder, source.path).split(sep).join('/')}`
}
