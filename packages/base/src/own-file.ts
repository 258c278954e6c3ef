/**
 * Finds postgrad's own files that are loaded by URL: those of threads, and the kernels. A user's bundle lacks them, so `ownFile` fails before a thread starts. The place of the
 * library also shows whether a thread has two copies of it.
 */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { PostgradError } from './errors.js'

/**
 * Packages lie side by side: `packages/rpc/dist/…` in the repository, `dist/rpc/…` in what is installed, where most of it is one file (`scripts/library.mjs`).
 */
const PLACE = /\/base\/((?:dist\/)?)own-file\.js$/

/** The folder that holds the packages; null in a bundle of the user's. */
export function houseOf(own: string | undefined = import.meta.url): string | null {
  return own !== undefined && PLACE.test(own) ? own.replace(PLACE, '/') : null
}

/** The settings of bundlers, each tried by `npm run pack:check` with a program that imports subpaths: a tool that takes a text as a whole takes 'postgrad/nn' for another package. */
const OUTSIDE =
  'Leave postgrad out of the bundle, with its subpaths (esbuild: --external:postgrad; rollup, rolldown, vite: external: [/^postgrad(\\/|$)/]; ' +
  "webpack: externals: [/^postgrad(\\/|$)/], externalsType: 'module'; ncc: -e postgrad -e postgrad/nn, each subpath by its name; " +
  "Next.js: serverExternalPackages: ['postgrad'])."

/**
 * @param op who needs it
 * @param inPackage the package that it belongs to
 * @param path of the file, below the compiled files of that package
 * @param own for tests: where this module lies
 * @throws POSTGRAD_BUNDLED
 */
export function ownFile(op: string, inPackage: string, path: string, own: string | undefined = import.meta.url): URL {
  const url = own !== undefined && PLACE.test(own) ? new URL(own.replace(PLACE, `/${inPackage}/$1${path}`)) : null
  // In the memory of a bundler's server there is nothing to look at.
  if (url !== null && (url.protocol !== 'file:' || existsSync(fileURLToPath(url)))) return url
  throw new PostgradError('POSTGRAD_BUNDLED', {
    op,
    message: `postgrad is part of a bundle, and the bundle lacks files that postgrad loads by their path${url === null ? '' : ` (${fileURLToPath(url)}; outside of a bundle: it is not installed or built as a whole)`}`,
    remedy: `${OUTSIDE} Emit the program that threads load as an entry of its own.`,
  })
}

/** The places of the copies that this thread has loaded; null is the inside of a bundle. */
const PLACES = Symbol.for('postgrad.places')

/**
 * Prints a warning if another copy was loaded before, from another place: `postgrad` that was left out of a bundle, next to a `postgrad/nn` that is in it. One copy rejects modules of
 * the other, by an error about a class that has the right name. No warning if jest loads a copy again after `resetModules`.
 * @param place the folder of this copy; null in a bundle
 */
export function noteCopy(
  place: string | null,
  realm = globalThis as { [PLACES]?: (string | null)[] },
  warn: (message: string, type: string) => void = (message, type) => process.emitWarning(message, type),
): void {
  realm[PLACES] ??= []
  const places = realm[PLACES]
  const other = places.find((one) => one === null || one !== place)
  places.push(place)
  if (other === undefined) return
  const said = (one: string | null): string => (one === null ? 'in a bundle' : `in ${one}`)
  warn(
    `a second copy of postgrad was loaded in this thread: one is ${said(other)}, the other ${said(place)}. Tensors, modules and workers of one copy are unknown to the other.\n  Remedy: ${OUTSIDE}`,
    'POSTGRAD_TWICE',
  )
}

noteCopy(houseOf())
