/** Deadlines between workers while an inspector of the process is opened and closed. */
import * as inspector from 'node:inspector'
import { expect, test } from '@jest/globals'
import { isInspected } from '@postgrad/base/internal'
import { launcher } from '../clusters.fixture.js'
import * as program from '../fixtures/main-thread.js'

const launch = launcher()
const PROGRAM = new URL('../fixtures/main-thread.js', import.meta.url)

test('CLU-115 a call between workers has no deadline while an inspector is open, also one that is opened after launch', async () => {
  inspector.open(0)
  try {
    const cluster = await launch(PROGRAM, { workers: ['a', 'b'] })
    for (const isOpenedLater of [false, true]) {
      if (isOpenedLater) inspector.open(0)
      // Threads know of it soon after; here they know at once.
      isInspected()
      let ended = false
      const call = cluster
        .on('a')
        .run(program.askInVain, 'b', 20)
        .catch((error) => {
          ended = true
          return error
        })
      await new Promise((resolve) => setTimeout(resolve, 300))
      expect(ended).toBe(false)
      inspector.close()
      expect(await call).toMatchObject({ code: 'RPC_TIMEOUT' })
    }
  } finally {
    inspector.close()
  }
}, 20_000)
