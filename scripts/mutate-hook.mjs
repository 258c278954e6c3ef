/** A hook of Node's module loader for `mutate-run.mjs`: one module has another source, and `@jest/globals` is jest's `expect` alone. */
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

let mutant = null
let expectUrl = null

export function initialize({ url, source, root }) {
  mutant = url === null ? null : { url, source, isLoaded: false }
  const globals = createRequire(`${root}/package.json`).resolve('@jest/globals')
  expectUrl = pathToFileURL(createRequire(globals).resolve('expect')).href
}

export function resolve(specifier, context, next) {
  return next(specifier === '@jest/globals' ? expectUrl : specifier, context)
}

export async function load(url, context, next) {
  if (url !== mutant?.url) return next(url, context)
  return { format: 'module', source: mutant.source, shortCircuit: true }
}
