/** A module that waits for itself. */
import { t } from './mutation.mjs'

export const aModuleThatWaitsForItself = [
  t(
    'own-import-awaited',
    'packages/data/src/workers.real.test.ts',
    'CLU-59 a module that awaits',
    'packages/base/src/user-module/import-watch.ts',
    'if (awaitFrames().some((site) => isTopLevelOf(site, url))) throw neverLoaded(url)',
    '',
    'a module that awaits an import of itself hangs for ever while something else keeps the process alive',
  ),
  t(
    'own-import-not-awaited-refused',
    'packages/data/src/workers.real.test.ts',
    'CLU-59 a module that awaits',
    'packages/base/src/user-module/import-watch.ts',
    'site.getEnclosingLineNumber() === 1 && site.getEnclosingColumnNumber() === 1',
    'true',
    'a function without a name counts as the top level of its module, and what would end is refused',
  ),
]
