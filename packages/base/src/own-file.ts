/** Files of postgrad's own that are loaded by their URL: by threads, and the kernels. In a bundle they are missing, which has to be said before a thread starts. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { PostgradError } from './errors.js'

/**
 * @param op who needs it
 * @param locate gives its URL, and throws where `import.meta.url` is undefined (a bundle in CommonJS)
 * @throws POSTGRAD_BUNDLED
 */
export function ownFile(op: string, locate: () => URL): URL {
  let url: URL | null = null
  try {
    url = locate()
    // In the memory of a bundler's server there is nothing to look at.
    if (url.protocol !== 'file:' || existsSync(fileURLToPath(url))) return url
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_INVALID_URL') throw error
  }
  throw new PostgradError('POSTGRAD_BUNDLED', {
    op,
    message: `postgrad is part of a bundle, which lacks the files that it loads by their place${url === null ? '' : ` (${fileURLToPath(url)}; where this is no bundle, it is not installed or built as a whole)`}`,
    remedy:
      "Leave it out of the bundle (esbuild: --external:postgrad; rollup, vite: external: ['postgrad']; webpack: externals: { postgrad: 'module postgrad' }), " +
      'and emit the program that threads load as an entry of its own.',
  })
}
