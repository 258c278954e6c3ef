/**
 * If a program imports a name from the wrong door, `import { SGD } from 'postgrad/nn'`, Node says only that it is not there. `sayDoor` adds which door of postgrad
 * has it.
 */
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { importUrl } from '../library-file.js'

/** Node's own words, to which nothing has been added yet. */
const NOT_THERE = /The requested module '(postgrad(?:\/[^']*)?)' does not provide an export named '([^']+)'$/

/** Adds to Node's error where the name is. Any other error is left as it is. @param url of the program, from which postgrad is looked for */
export async function sayDoor(error: unknown, url: string): Promise<void> {
  if (!(error instanceof SyntaxError)) return
  const [, , name] = NOT_THERE.exec(error.message) ?? []
  const door = name === undefined ? null : await doorOf(name, url).catch(() => null)
  if (door !== null) error.message += `; it is in '${door}'`
}

async function doorOf(name: string, url: string): Promise<string | null> {
  const require = createRequire(url)
  const { exports } = require('postgrad/package.json') as { exports: Readonly<Record<string, string>> }
  const [root, ...others] = Object.keys(exports).filter((each) => !each.endsWith('.json'))
  // The root has some names of the others, too.
  for (const door of [...others, root!]) {
    const specifier = door.replace('.', 'postgrad')
    const names = await importUrl<{ default?: object }>(pathToFileURL(require.resolve(specifier)).href).catch(() => ({ default: {} }))
    // Where it is CommonJS, they are those of its default.
    if (name in names || name in (names.default ?? {})) return specifier
  }
  return null
}
