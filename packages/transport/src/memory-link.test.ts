import { RealClock } from './clock.js'
import { describeLink } from './link.suite.js'
import { memoryLinkPair } from './memory-link.js'

const clock = new RealClock()
const turn = () => new Promise<void>((resolve) => clock.defer(resolve))

describeLink('the memory link', {
  make() {
    const [a, b] = memoryLinkPair(clock)
    return {
      a,
      b,
      dispose() {
        a.close()
        b.close()
      },
    }
  },
  async until(done) {
    for (let i = 0; i < 200 && !done(); i++) await turn()
  },
  async turns() {
    for (let i = 0; i < 5; i++) await turn()
  },
})
