/** Starts both workers, each a thread, trains the model, and prints what it writes. */
import { launch } from 'postgrad'
import { main, WORKERS } from './program.js'

await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: WORKERS })
const { losses, text } = await cluster.on('trainer').run(main, 150)
for (const step of [1, 50, 100, 150]) console.log(`loss of step ${step}: ${losses[step - 1]!.toFixed(3)}`)
console.log(`the model writes: ${text}`)
