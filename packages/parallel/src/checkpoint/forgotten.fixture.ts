/** A program that forgets to await a save or a load that fails: `node forgotten.fixture.js DIRECTORY save|load`. */
import { WorkerRuntime } from '@postgrad/rpc/internal'
import { RealClock } from '@postgrad/transport/internal'
import { Checkpoints } from './checkpoints.js'

const [directory, what] = process.argv.slice(2) as [string, string]
const worker = new WorkerRuntime({ name: 'worker0', id: 0, clock: new RealClock(), finalizers: 'release' })
worker.run(() => {
  const checkpoints = new Checkpoints(directory)
  void (what === 'save' ? checkpoints.save(1, { done: 1 }) : checkpoints.load({}))
})
setTimeout(() => process.exit(0), 5_000)
