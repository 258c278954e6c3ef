/** Whether an inspector is open, to which a debugger may connect and hold the program. On the main thread Node knows; other threads are told when they are started. */
import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads'
import { builtin } from './builtin.js'

const KEY = 'postgrad.inspected'

export function isInspected(): boolean {
  return isMainThread ? builtin<typeof import('node:inspector')>('node:inspector').url() !== undefined : getEnvironmentData(KEY) === true
}

/** To be called before a thread is started. */
export function shareInspected(): void {
  if (isInspected()) setEnvironmentData(KEY, true)
}
