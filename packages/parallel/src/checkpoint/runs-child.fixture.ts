/** A run that saves one step after the other into a directory that another run also saves into, until it is killed: `node runs-child.fixture.js DIRECTORY NUMBER`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isPostgradError } from '@postgrad/base'
import { Checkpoints } from './checkpoints.js'
import { beginRun } from './runs.fixture.js'

const [directory, number] = process.argv.slice(2) as [string, string]
const say = (text: string): Promise<void> => new Promise((resolve) => process.stdout.write(`${text}\n`, () => resolve()))

const { workers, here, there, mark } = await beginRun()
await workers[0].run(async () => {
  const checkpoints = new Checkpoints(directory, { keep: 3 })
  const who = Number(number)
  await mark(who)
  for (;;) {
    const step = ((await checkpoints.latest())?.step ?? 0) + 1
    await say('saving')
    try {
      await checkpoints.save(step, { here, there, who })
      await say('saved')
    } catch (error) {
      if (!isPostgradError(error, 'CHECKPOINT_BUSY')) throw error
      await say('busy')
      await sleep(2)
    }
  }
})
