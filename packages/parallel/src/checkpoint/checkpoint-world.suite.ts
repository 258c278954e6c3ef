/** The fixture of the tests of checkpoints: a simulated cluster whose workers write into one directory of the machine, and modules to save. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from '@jest/globals'
import { Module } from '@postgrad/nn'
import { expose } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { type Tensor, zeros } from '@postgrad/tensor'
import { RemoteModule } from '../remote-module.js'
import { overSeeds } from '../sim-workers.suite.js'
import { type CheckpointDisk, syncDisk, useCheckpointDisk } from './disk.js'

/** Weights of one value. */
export class Filled extends Module {
  readonly w: Tensor
  constructor(size: number, value = 0) {
    super()
    this.w = zeros([size], { requiresGrad: true })
    this.fill(value)
  }
  forward(): Tensor {
    return this.w
  }
  fill(value: number): void {
    this.loadStateDict({ w: zeros([...this.w.shape]).add(value) })
  }
  values(): unknown {
    return this.w.toArray()
  }
}

/** A module with one of another worker in it. */
export class Outer extends Module {
  readonly own = new Filled(1)
  readonly inner: RemoteModule<Filled>
  constructor(worker: string) {
    super()
    this.inner = new RemoteModule(worker, Filled, [1])
  }
  forward(): Tensor {
    return this.own.forward()
  }
  /** The inner one, so that others can write to it past this worker. */
  innerRef() {
    return this.inner.getModuleRref()
  }
}

/** A state without tensors. */
export class Count {
  value = 0
  set(value: number): void {
    this.value = value
  }
  get(): number {
    return this.value
  }
  stateDict(): { value: number } {
    return { value: this.value }
  }
  loadStateDict({ value }: { value: number }): void {
    this.value = value
  }
}
expose({ CheckpointFilled: Filled, CheckpointOuter: Outer, CheckpointCount: Count })

/** A directory for each test, which is gone after it. */
export function directories(): () => string {
  let directory = ''
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'postgrad-checkpoint-'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))
  return () => directory
}

/** Runs `main` on worker 0 of a fresh cluster. */
export async function onCluster(
  size: number,
  main: (workers: readonly WorkerRuntime[]) => Promise<void>,
  disk: CheckpointDisk = syncDisk,
): Promise<void> {
  await overSeeds(
    size,
    async (workers) => {
      for (const worker of workers) useCheckpointDisk(worker, disk)
      await main(workers)
    },
    1,
  )
}
