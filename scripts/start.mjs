/** `npm start`: set-up, then the main job, a character-level language model trained over three workers. Arguments go to it: `npm start -- --help`. */
import { runApp } from './run-app.mjs'
import { setupOrExit } from './setup.mjs'

await setupOrExit()
await runApp('apps/examples/dist/char-lm/main.js')
