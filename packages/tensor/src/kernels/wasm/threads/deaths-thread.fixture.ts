/** One of the workers of `deaths.fixture.ts`: it computes in the heap that it was given, and compares each result with the first one, until it is terminated. */
import { setImmediate } from 'node:timers/promises'
import { type Worker, workerData } from 'node:worker_threads'
import { attachThreadHeap } from '../../../heap/thread-heap.js'
import { memoryScope, ones, rand, type Tensor } from '../../../index.js'
import { installKernelPause } from '../calls/pause.js'
import { helperCounts, setComputeThreads, withThreadLimits } from './compute-threads.js'
import { CHECKED, type DeathsData, END_ONE, ENDED } from './deaths.fixture.js'

const { handle, words: memory } = workerData as DeathsData
const words = new Int32Array(memory)
const heap = attachThreadHeap(handle)
const helpers: Worker[] = []
withThreadLimits({ cores: 16, sharedWork: 1, onStart: (worker) => helpers.push(worker) })
const HELPERS = 2

// In the middle of a kernel, while helpers compute parts of it.
installKernelPause(() => {
  if (helperCounts().ready < HELPERS || Atomics.compareExchange(words, END_ONE, 1, 0) === 0) return
  void helpers.at(-1)!.terminate()
  Atomics.add(words, ENDED, 1)
})

const [a, b] = [rand([512, 300]), rand([300, 512])]
const x = rand([400, 400])
const guard = ones([400, 400])
const compute = (): Tensor => a.matmul(b).exp().add(1).slice(0, 0, 400).slice(1, 0, 400).mul(x.sin())
const bytesOf = (y: Tensor): Buffer => Buffer.from(y.dataSync().slice().buffer)
const expected = memoryScope(() => bytesOf(compute()))
setComputeThreads(1 + HELPERS)
for (;;) {
  memoryScope(() => {
    const found = bytesOf(compute())
    if (Buffer.compare(found, expected) !== 0) throw new Error('a result has other bits')
  })
  // Nobody else writes to what it holds.
  if (guard.dataSync().some((value) => value !== 1)) throw new Error(`slot ${heap.slot}: a block has changed`)
  Atomics.add(words, CHECKED, 1)
  // Helpers that have ended are replaced between turns.
  await setImmediate()
}
