/**
 * A hook of Node's module loader: a `.ts` file of the user's is an ES module also where no package.json says `"type": "module"`. Taken as
 * CommonJS it could not import this package, and a beginner's folder has no package.json. Node 20 loads this file in the loader's thread and calls
 * `resolve` there; later versions call `resolveSync` in the worker's own.
 */
interface Resolved {
  readonly url: string
  readonly format?: string | null | undefined
}

export async function resolve(
  specifier: string,
  context: object,
  next: (specifier: string, context: object) => Resolved | Promise<Resolved>,
): Promise<Resolved> {
  return asModule(await next(specifier, context))
}

export function resolveSync(specifier: string, context: object, next: (specifier: string, context: object) => Resolved): Resolved {
  return asModule(next(specifier, context))
}

function asModule(resolved: Resolved): Resolved {
  const isUsers = /^file:.*\.ts(?:\?|$)/.test(resolved.url) && !resolved.url.includes('/node_modules/')
  return isUsers && resolved.format === 'commonjs' ? { ...resolved, format: 'module' } : resolved
}
