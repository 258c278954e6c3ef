#!/usr/bin/env node
/** The executable `postgrad`: loads the command (`commands/start.ts`), and says what to do if the system gives no files for that. Nothing else is loaded before. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { EXIT } from './exit-codes.js'

/** So many files a process has left that could load the command. */
const FILES_LEFT = 64

const { start } = await import('./commands/start.js').catch((error: unknown) => {
  const full = isOfFiles(error) ? error : noFilesLeft()
  if (full === null) throw error
  // Not by process.stderr, which may need a file.
  writeSync(
    2,
    `postgrad: the command could not be loaded: ${(full as Error).message}. Allow more open files before you start it (ulimit -n 4096).\n  code: TOO_MANY_OPEN_FILES\n`,
  )
  process.exit(EXIT.notStarted)
})
await start()

function isOfFiles(error: unknown): boolean {
  const { code } = Object(error) as { code?: unknown }
  return code === 'EMFILE' || code === 'ENFILE'
}

/** Node takes a package.json that it cannot open for one that is not there or is wrong: the module is then not found. */
function noFilesLeft(): unknown {
  const held: number[] = []
  try {
    while (held.length < FILES_LEFT) held.push(openSync(new URL(import.meta.url), 'r'))
    return null
  } catch (error) {
    return isOfFiles(error) ? error : null
  } finally {
    for (const file of held) closeSync(file)
  }
}
