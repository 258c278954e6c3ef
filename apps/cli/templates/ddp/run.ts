/** Starts two trainers, each on a thread, and runs `main` on both at once. */
import { launch } from 'postgrad'
import { main, TRAINERS } from './program.js'

await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: TRAINERS })
const reports = await Promise.all(TRAINERS.map((name) => cluster.on(name).run(main, 20)))
for (const epoch of [1, 10, 20])
  console.log(`loss of epoch ${epoch}: ${reports.map(({ losses }, i) => `${losses[epoch - 1]!.toFixed(3)} on ${TRAINERS[i]}`).join(', ')}`)
for (const [i, { right }] of reports.entries()) console.log(`${TRAINERS[i]}: ${(100 * right).toFixed(1)} % of fresh points right`)
