/** Larger programs under every order of delivery: `npm run soak -- testing/dist/explore`. */
import { expect, test } from '@jest/globals'
import { call, expose } from '@postgrad/rpc'
import { explore } from './explore.js'

const twice = (x: number): number => 2 * x
expose({ twice })

test('TK-4: three workers with three messages each, in a ring: every order', async () => {
  const three = async (to: string) => {
    let x = 1
    for (let n = 0; n < 3; n++) x = await call(to, twice, [x])
    return x
  }
  const found = await explore({ workers: 3, ordersMax: 50_000, countMessages: false }, (sim) =>
    Promise.all([0, 1, 2].map((i) => sim.on(`worker${i}`).run(three, `worker${(i + 1) % 3}`))),
  )
  process.stdout.write(`      three workers with three messages each: ${found.text}\n`)
  expect(found).toMatchObject({ exhausted: true, outcomes: 1, orders: 12_111, redundant: 0 })
})
