/** Starts four workers, each a thread, and runs `main` on one of them. */
import { launch } from 'postgrad'
import { KEEPERS, main } from './program.js'

await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: ['learner', ...KEEPERS] })
const { losses, slope, offset } = await cluster.on('learner').run(main, 30)
for (const step of [1, 10, 20, 30]) console.log(`loss of step ${step}: ${losses[step - 1]!.toFixed(4)}`)
console.log(`the line: y = ${(await slope.item()).toFixed(2)}x + ${(await offset.item()).toFixed(2)}`)
