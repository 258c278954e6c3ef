/** `npm run example rl` as a command; `job.ts` has the run. */
import { join } from 'node:path'
import { REPOSITORY, runCommand, userPath } from '../shared/command.js'
import { run } from './job.js'
import { HELP, readSettings } from './settings.js'

process.exitCode = await runCommand(
  {
    name: 'npm run example rl',
    help: HELP,
    read: readSettings,
    interrupted: 'the curve so far was written',
    run: (settings, signal) =>
      run({ settings, out: settings.out === null ? join(REPOSITORY, 'out', 'rl.svg') : userPath(settings.out), signal }),
  },
  process.argv.slice(2),
)
