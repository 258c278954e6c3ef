/**
 * Finds the current context: the one in the scope, which follows a program through its awaits. `api.ts` opens and closes contexts.
 */
import { currentScope, withScope } from '@postgrad/base/internal'
import { DistAutogradContext } from './dist-autograd-context.js'

/**
 * Returns the distributed context of the running code, or null if it runs in none. A function that serves a call runs in the context of its caller.
 * @example
 * currentContext() // null
 * await distAutograd.context(async (ctx) => currentContext() === ctx) // true
 */
export function currentContext(): DistAutogradContext | null {
  const { context } = currentScope()
  return context instanceof DistAutogradContext ? context : null
}

/** Runs `fn` with `context` as the current one. */
export function withContext<T>(context: DistAutogradContext, fn: () => T): T {
  return withScope({ context }, fn)
}
