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

export function resolveSync(
  specifier: string,
  context: { readonly parentURL?: string | undefined },
  next: (specifier: string, context: object) => Resolved,
): Resolved {
  try {
    return asModule(next(specifier, context))
  } catch (error) {
    // TypeScript's own rule for imports, which Node does not know: './model.js' is model.ts while that has not been compiled.
    const isTypeScripts = /\.m?ts(?:\?|$)/.test(context.parentURL ?? '') && /^(?:\.|file:).*\.m?js$/.test(specifier)
    if (!isTypeScripts || (error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    try {
      return asModule(next(specifier.replace(/js$/, 'ts'), context))
    } catch {
      throw error
    }
  }
}

/** Node's format for it, with "type": "commonjs" in package.json (npm 11 writes that), and its own. The second are of Nodes that strip types. */
const MODULES: Readonly<Record<string, string>> = { commonjs: 'module', 'commonjs-typescript': 'module-typescript' }

function asModule(resolved: Resolved): Resolved {
  const isUsers = /^file:.*\.ts(?:\?|$)/.test(resolved.url) && !resolved.url.includes('/node_modules/')
  const format = isUsers ? MODULES[resolved.format ?? ''] : undefined
  return format === undefined ? resolved : { ...resolved, format }
}
