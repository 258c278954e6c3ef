/** A run of two workers in one process, over the clock and files of the machine; `runs-child.fixture.ts` is one that is killed. */
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { Module } from '@postgrad/nn'
import { expose } from '@postgrad/rpc'
import { WorkerRuntime } from '@postgrad/rpc/internal'
import { type Tensor, zeros } from '@postgrad/tensor'
import { memoryLinkPair, RealClock } from '@postgrad/transport/internal'
import { RemoteModule } from '../remote-module.js'

/** Some 200 KB, all of one value. */
export class Marked extends Module {
  readonly w: Tensor = zeros([50_000], { requiresGrad: true })
  forward(): Tensor {
    return this.w
  }
  mark(value: number): void {
    this.loadStateDict({ w: zeros([50_000]).add(value) })
  }
  values(): number[] {
    return [...new Set(this.w.dataSync() as Float32Array)]
  }
}
expose({ MarkedOfRuns: Marked })

export interface Run {
  readonly workers: readonly [WorkerRuntime, WorkerRuntime]
  readonly here: Marked
  readonly there: RemoteModule<Marked>
  /** The weights' values on both workers. */
  values(): Promise<number[]>
  mark(value: number): Promise<void>
  close(): Promise<void>
}

/** Worker 0 of it makes the modules; the caller runs what it does by `workers[0].run`. */
export async function beginRun(): Promise<Run> {
  const clock = new RealClock()
  const workers = [0, 1].map((id) => new WorkerRuntime({ name: `worker${id}`, id, clock, finalizers: 'release' })) as [
    WorkerRuntime,
    WorkerRuntime,
  ]
  const [a, b] = memoryLinkPair(clock)
  for (const worker of workers) installDistAutograd(worker)
  workers[0].connect(workers[1].info, a)
  workers[1].connect(workers[0].info, b)
  return await workers[0].run(async () => {
    const here = new Marked()
    const there = new RemoteModule('worker1', Marked, [])
    const ref = there.getModuleRref()
    return {
      workers,
      here,
      there,
      values: async () => [...new Set([...here.values(), ...(await ref.call('values', []))])],
      mark: async (value) => {
        here.mark(value)
        await ref.call('mark', [value])
      },
      close: async () => void (await Promise.all(workers.map((worker) => worker.close()))),
    }
  })
}
