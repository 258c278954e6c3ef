/** The main job (`npm start`) as a command: a character model spread over three workers learns real text, in about a minute. `job.ts` has the work. */
import { runCommand, userPath } from '../shared/command.js'
import { commandOf, HOME } from '../shared/place.js'
import { runJob } from './job.js'
import { HELP, readSettings } from './settings.js'
import { encode, ownText, readText } from './text.js'

process.exitCode = await runCommand(
  {
    name: commandOf('char-lm'),
    help: HELP,
    read: readSettings,
    interrupted: 'nothing was written',
    async run(settings, signal) {
      const text = settings.data === null ? await ownText(HOME) : await readText(userPath(settings.data))
      const out = userPath(settings.out ?? 'out/char-lm.svg')
      await runJob({ program: new URL('./program.js', import.meta.url), settings, corpus: encode(text, settings), out, signal })
    },
  },
  process.argv.slice(2),
)
