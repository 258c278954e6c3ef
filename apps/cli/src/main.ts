#!/usr/bin/env node
/** The executable `postgrad`: loads the command (`commands/start.ts`), and says what to do if the system gives no files for that. Nothing else is loaded before. */
import { writeSync } from 'node:fs'
import { EXIT } from './exit-codes.js'

const { start } = await import('./commands/start.js').catch((error: unknown) => {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown }
  if (code !== 'EMFILE' && code !== 'ENFILE') throw error
  // Not by process.stderr, which may need a file.
  writeSync(
    2,
    `postgrad: the command could not be loaded: ${message}. Allow more open files before you start it (ulimit -n 4096).\n  code: TOO_MANY_OPEN_FILES\n`,
  )
  process.exit(EXIT.notStarted)
})
await start()
