/** A training with a metrics file and a generator of its own, which kills its process after a step: `node killed.fixture.js DIRECTORY KILL_AT FLUSH_MS`. `checkpoints.real.test.ts` runs it. */
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { Checkpoints, expose, Generator, launch, mseLoss, randn } from '../index.js'
import { Linear } from '../nn.js'
import { Adam } from '../optim.js'
import { MetricsWriter } from '../training.js'

const [UNTIL, EVERY] = [20, 5]

async function train(directory: string, killAt: number, flushMs: number): Promise<void> {
  const model = new Linear(3, 1)
  const optimizer = new Adam(model.parameters(), { lr: 0.1 })
  const random = new Generator(3)
  await using metrics = new MetricsWriter(join(directory, 'run.csv'), { flushMs })
  const checkpoints = new Checkpoints(join(directory, 'checkpoints'), { keep: 1 })
  for await (const step of checkpoints.steps({ model, optimizer, metrics, random }, { until: UNTIL, every: EVERY })) {
    const x = randn([8, 3])
    optimizer.zeroGrad()
    const loss = mseLoss(model.forward(x), x.sum(1, true))
    loss.backward()
    optimizer.step()
    metrics.log({ loss, drawn: random.uniform() }, step)
    // The lines of later steps reach the file, or do not.
    if (flushMs === 0) await metrics.flush()
    if (step === killAt) process.kill(process.pid, 'SIGKILL')
  }
}
expose({ train })

if (isMainThread) {
  const [directory, killAt, flushMs] = process.argv.slice(2) as [string, string, string]
  await using cluster = await launch(new URL(import.meta.url), { workers: 1, seed: 7 })
  await cluster.on('worker0').run(train, directory, Number(killAt), Number(flushMs))
}
