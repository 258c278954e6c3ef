/** Runs a compiled program of apps in this process, as if `node` had been called with it in the user's folder; Ctrl-C ends it with code 130. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from './setup.mjs'

/** `path` is relative to `folder`, the repository or `bundledTree()`. The program finds its arguments in process.argv, where it would look for them anyway. */
export async function runApp(path, folder = root) {
  const main = join(folder, path)
  if (!existsSync(main)) {
    console.error(`${path} is missing.\n  Remedy: delete the dist folder next to its src, and run again.`)
    process.exit(1)
  }
  process.argv[1] = main
  // npm runs a script in the package's folder, and says where the user was.
  if (process.env.INIT_CWD !== undefined) process.chdir(process.env.INIT_CWD)
  process.on('SIGINT', () => {
    if (process.listenerCount('SIGINT') > 1) return // the program ends in its own way
    if (process.stderr.isTTY) process.stderr.write('\x1b[?25h\n') // a progress bar has hidden the cursor
    process.exit(130)
  })
  await import(pathToFileURL(main).href)
}
