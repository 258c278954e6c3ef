/** `npm run example rl` as a command; `job.ts` has the run. */
import { runCommand, userPath } from '../shared/command.js'
import { commandOf } from '../shared/place.js'
import { run } from './job.js'
import { HELP, readSettings } from './settings.js'

process.exitCode = await runCommand(
  {
    name: commandOf('rl'),
    help: HELP,
    read: readSettings,
    interrupted: 'the curve so far was written',
    run: (settings, signal) => run({ settings, out: userPath(settings.out ?? 'out/rl.svg'), signal }),
  },
  process.argv.slice(2),
)
