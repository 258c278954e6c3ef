/** Modules of Node that few programs need and that take long to load: `crypto` takes every worker 9 ms of its start. */
import { createRequire } from 'node:module'

let load: NodeJS.Require | null = null
/** Each is required once: jest lets nothing be required after a test file has ended, and timers of postgrad may still run. */
const loaded = new Map<string, unknown>()

/** Loads it when it is needed, and at once: `builtin<typeof import('node:crypto')>('node:crypto')`. */
export function builtin<T>(name: `node:${string}`): T {
  let found = loaded.get(name)
  if (found === undefined) {
    load ??= createRequire(process.execPath)
    found = load(name)
    loaded.set(name, found)
  }
  return found as T
}
