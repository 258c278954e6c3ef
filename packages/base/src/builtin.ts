/** Modules of Node that few programs need and that take long to load: `crypto` takes every worker 9 ms of its start. */
import { createRequire } from 'node:module'

let load: NodeJS.Require | null = null

/** Loads it when it is needed, and at once: `builtin<typeof import('node:crypto')>('node:crypto')`. */
export function builtin<T>(name: `node:${string}`): T {
  load ??= createRequire(process.execPath)
  return load(name) as T
}
