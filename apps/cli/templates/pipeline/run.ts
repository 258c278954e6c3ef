/** Starts a worker for each stage, as a thread, and runs `main` on all at once. */
import { launch } from 'postgrad'
import { main, WORKERS } from './program.js'

await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: WORKERS })
const reports = await Promise.all(WORKERS.map((name) => cluster.on(name).run(main, 150)))
const losses = reports.at(-1)!
for (const step of [1, 50, 100, 150]) console.log(`loss of step ${step}: ${losses[step - 1]!.toFixed(3)}`)
