/** Bundles and types. */
import { t } from './mutation.mjs'

export const bundlesAndTypes = [
  t(
    'second-copy-unsaid',
    'packages/base/src/own-file.test.ts',
    'CLU-57 a second copy',
    'packages/base/src/own-file.ts',
    'if (other === undefined) return',
    'return',
    'a second copy of the library in one thread is not said to be one',
  ),
  t(
    'bundlers-without-subpaths',
    'packages/base/src/own-file.test.ts',
    'CLU-57 a bundle',
    'packages/base/src/own-file.ts',
    'rollup, rolldown, vite: external: [/^postgrad(\\\\/|$)/]',
    'rollup, vite: external: postgrad',
    'the setting of rollup takes postgrad/nn into the bundle',
  ),
]
