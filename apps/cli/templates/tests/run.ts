/** The same program on threads, where messages seldom arrive in another order: the race shows in some runs. */
import { launch } from 'postgrad'
import { ADDERS, racySum, sum } from './program.js'

await using cluster = await launch(new URL('./program.js', import.meta.url), { workers: ['keeper', ...ADDERS] })
console.log(`with the race: ${await (await cluster.on('keeper').run(racySum)).item()}`)
console.log(`repaired: ${await (await cluster.on('keeper').run(sum)).item()}`)
