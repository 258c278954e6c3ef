/** The simulated link under transport's suite, in a world where what is in flight arrives together; chance has tests of its own. */
import { setImmediate as immediate } from 'node:timers/promises'
import { describeLink } from '@postgrad/transport/suite'
import { SimWorld } from './world.js'

for (const seed of [1, 2, 3]) {
  let world = new SimWorld(seed)

  const turn = async () => {
    world.step()
    await immediate()
  }

  describeLink(`sim link, seed ${seed}`, {
    make() {
      world = new SimWorld(seed, { arrival: 'at-once' })
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
