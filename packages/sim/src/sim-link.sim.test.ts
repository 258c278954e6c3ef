/** Transport's suite on simulated links, in a world where all frames in flight arrive together; chance has tests of its own. */
import { setImmediate as immediate } from 'node:timers/promises'
import { describeLink } from '@postgrad/transport/suite'
import { SimWorld } from './world.js'

for (const [seed, name, options] of [
  [1, 'sim link', {}],
  [2, 'sim link', {}],
  [3, 'sim link', {}],
  [4, 'session over a sim link (SES-1)', { faults: { rules: [] } }],
] as const) {
  let world = new SimWorld(seed)

  const turn = async () => {
    world.step()
    await immediate()
  }

  describeLink(`${name}, seed ${seed}`, {
    make() {
      world = new SimWorld(seed, { arrival: 'at-once', ...options })
      const [a, b] = world.link('a', 'b')
      return { a, b, dispose: () => world.drain() }
    },
    async until(done) {
      await immediate()
      for (let i = 0; i < 10_000 && !done(); i++) await turn()
    },
    async turns() {
      for (let i = 0; i < 5; i++) await turn()
    },
  })
}
