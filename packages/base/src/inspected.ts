/**
 * Whether an inspector is open, to which a debugger may connect and hold the program. The main thread asks Node, and writes the answer to a word that threads of
 * the process share, every 0.5 s, since an inspector can be opened and closed at any time.
 */
import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads'
import { builtin } from './builtin.js'
import { setInterval } from './time/real-time.js'

const KEY = '@postgrad/base: an inspector is open'
/** After this time threads know. */
const LOOK_MS = 500
let isLooking = false

/** Made on the main thread, before it starts a thread. */
function word(): Int32Array {
  let word = getEnvironmentData(KEY) as Int32Array | undefined
  if (word === undefined) {
    word = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    setEnvironmentData(KEY, word)
  }
  return word
}

export function isInspected(): boolean {
  if (!isMainThread) return Atomics.load(word(), 0) === 1
  const isOpen = builtin<typeof import('node:inspector')>('node:inspector').url() !== undefined
  Atomics.store(word(), 0, Number(isOpen))
  return isOpen
}

/** To be called before a thread is started. */
export function shareInspected(): void {
  isInspected()
  if (!isMainThread || isLooking) return
  isLooking = true
  setInterval(isInspected, LOOK_MS).unref()
}
