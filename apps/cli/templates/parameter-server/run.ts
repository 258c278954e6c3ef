/** Starts the server and two trainers, each on a thread, and lets them train. */
import { launch } from 'postgrad'
import { main, TRAINERS } from './program.js'

await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: ['ps', ...TRAINERS] })
const losses = await cluster.on('ps').run(main, 200)
for (const step of [1, 50, 100, 200])
  console.log(`loss of step ${step}: ${losses.map((of, i) => `${of[step - 1]!.toFixed(3)} on ${TRAINERS[i]}`).join(', ')}`)
