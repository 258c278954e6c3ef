/** The main job (`npm start`) as a command: a character model spread over three workers learns real text, in about a minute. `job.ts` has the work. */
import { join } from 'node:path'
import { REPOSITORY, runCommand, userPath } from '../shared/command.js'
import { runJob } from './job.js'
import { HELP, readSettings } from './settings.js'
import { encode, readText, repositoryText } from './text.js'

process.exitCode = await runCommand(
  {
    name: 'npm start',
    help: HELP,
    read: readSettings,
    interrupted: 'nothing was written',
    async run(settings, signal) {
      const text = settings.data === null ? await repositoryText(REPOSITORY) : await readText(userPath(settings.data))
      const out = settings.out === null ? join(REPOSITORY, 'out', 'char-lm.svg') : userPath(settings.out)
      await runJob({ program: new URL('./program.js', import.meta.url), settings, corpus: encode(text, settings), out, signal })
    },
  },
  process.argv.slice(2),
)
