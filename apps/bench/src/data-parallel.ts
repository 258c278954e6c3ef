/** Steps of data-parallel training, run by worker0 and the ranks that it calls; the twin is `ddp_steps` in `python/torch_peer.py`. Workers load this module. */
import { setTimeout as sleep } from 'node:timers/promises'
import { call, crossEntropy, expose, getWorkerInfos, randn, tensor } from 'postgrad'
import { barrier, DistributedDataParallel, initProcessGroup, isInitialized } from 'postgrad/distributed'
import { Linear, ReLU, Sequential } from 'postgrad/nn'
import { SGD } from 'postgrad/optim'
import { currentRuntime } from 'postgrad/plugin'

/** `ddp`: with PyTorch's buckets. `local`: without a word to the others. `late`: all gradients in one bucket, which is full when the pass is over. */
export type StepMode = 'ddp' | 'late' | 'local'

const [INPUTS, CLASSES] = [784, 10]
/** Ranks begin at most so far apart. */
const APART_MS = 5

async function make(mode: StepMode, batch: number, width: number): Promise<() => Promise<void>> {
  const module = new Sequential(new Linear(INPUTS, width), new ReLU(), new Linear(width, width), new ReLU(), new Linear(width, CLASSES))
  const limits = mode === 'late' ? { firstBucketMb: 1000, bucketCapMb: 1000 } : {}
  const model = mode === 'local' ? null : await DistributedDataParallel.create(module, limits)
  const optimizer = new SGD(module.parameters(), { lr: 0.01 })
  const x = randn([batch, INPUTS])
  const target = tensor(Int32Array.from({ length: batch }, (_, i) => (7 * i) % CLASSES))
  return async () => {
    optimizer.zeroGrad()
    if (model === null) crossEntropy(module.forward(x), target).backward()
    else await model.backward(crossEntropy(await model.forward(x), target))
    optimizer.step()
  }
}

/** Seconds of this rank for n steps. */
export async function ddpStepsHere(n: number, mode: StepMode, batch: number, width: number): Promise<number> {
  if (!isInitialized()) await initProcessGroup()
  const step = await currentRuntime().slot(Symbol.for(`postgrad.bench.ddp ${mode} ${batch} ${width}`), () => make(mode, batch, width))
  await barrier()
  // The message that releases the other rank leaves in a later turn, and local steps give up no turn: ranks would run one by one, each with all cores.
  await sleep(APART_MS)
  const started = performance.now()
  for (let i = 0; i < n; i++) await step()
  return (performance.now() - started) / 1000
}

/** Of the rank that needed longest. */
export async function ddpSteps(n: number, mode: StepMode, batch: number, width: number): Promise<number> {
  const ranks = getWorkerInfos().map(({ name }) => call(name, ddpStepsHere, [n, mode, batch, width]))
  return Math.max(...(await Promise.all(ranks)))
}

expose({ ddpStepsHere, ddpSteps })
