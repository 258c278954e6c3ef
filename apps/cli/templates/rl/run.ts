/** Starts an agent and its observers, each on a thread, and lets them play. */
import { launch } from 'postgrad'
import { main, OBSERVERS } from './program.js'

await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: ['agent', ...OBSERVERS] })
const steps = await cluster.on('agent').run(main, 60)
for (let first = 0; first < steps.length; first += 10) {
  const ten = steps.slice(first, first + 10)
  console.log(`episodes ${first + 1} to ${first + 10}: upright for ${Math.round(ten.reduce((sum, each) => sum + each) / 10)} steps`)
}
