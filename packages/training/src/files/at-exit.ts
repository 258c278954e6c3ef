/** Calls functions when the thread ends. They share one listener of 'exit', since Node warns of more than ten listeners. */
import { writeSync } from 'node:fs'

const open = new Set<(code: number) => void>()

const onExit = (code: number): void => {
  for (const fn of open) fn(code)
}

/** @param fn may not wait for anything: the thread ends after it */
export function addAtExit(fn: (code: number) => void): void {
  if (open.size === 0) process.on('exit', onExit)
  open.add(fn)
}

export function removeAtExit(fn: (code: number) => void): void {
  open.delete(fn)
  if (open.size === 0) process.off('exit', onExit)
}

/** Prints a line on stderr at once: streams and warnings need another turn of the event loop. */
export function printAtExit(text: string): void {
  try {
    writeSync(2, `${text}\n`)
  } catch {
    // A closed or full stderr: no one reads it.
  }
}
