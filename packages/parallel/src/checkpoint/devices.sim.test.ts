/** Checkpoints of modules and optimizers whose tensors are on a device, and that are loaded on another. PyTorch: `torch.load` with `map_location`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { Adam, Linear, Sequential, Tanh } from '@postgrad/nn'
import { type DeviceSpec, manualSeed, type Tensor, tensor } from '@postgrad/tensor'
import { residentDevice } from '@postgrad/tensor/suite'
import { overSeeds } from '../sim-workers.suite.js'
import { Checkpoints } from './checkpoints.js'
import { syncDisk, useCheckpointDisk } from './disk.js'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'postgrad-checkpoint-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** A model and its optimizer on a device, after a step of training where `steps` says so. */
function trained(device: DeviceSpec, steps: number) {
  manualSeed(3)
  const model = new Sequential(new Linear(3, 4), new Tanh(), new Linear(4, 1))
  model.to(device)
  const optimizer = new Adam(model.parameters(), { lr: 0.1 })
  const x = tensor([[1, 2, 3]], { device })
  const step = () => {
    optimizer.zeroGrad()
    model.forward(x).sum().backward()
    optimizer.step()
  }
  for (let n = 0; n < steps; n++) step()
  return { model, optimizer, step }
}

const values = async (tensors: Iterable<Tensor>) => Promise.all([...tensors].map(async (each) => (await each.cpu()).toArray()))

test.each([
  ['there', 'there'],
  ['there', 'cpu'],
  ['cpu', 'there'],
])(
  'CP-6 what is saved from a device (%s) is loaded where the module and the optimizer are (%s), and training goes on with the same bits',
  async (from, to) => {
    await overSeeds(
      1,
      async ([worker]) => {
        useCheckpointDisk(worker!, syncDisk)
        const spec = residentDevice().spec as DeviceSpec
        const at = (place: string): DeviceSpec => (place === 'cpu' ? 'cpu' : spec)
        const saved = trained(at(from), 2)
        await new Checkpoints(directory).save(2, { model: saved.model, optimizer: saved.optimizer })
        const loaded = trained(at(to), 0)
        await new Checkpoints(directory).load({ model: loaded.model, optimizer: loaded.optimizer })
        expect(loaded.model.parameters().map(({ device }) => String(device))).toEqual([at(to), at(to), at(to), at(to)])
        saved.step()
        loaded.step()
        expect(await values(loaded.model.parameters())).toEqual(await values(saved.model.parameters()))
        expect(await values(loaded.model.parameters())).not.toEqual(await values(trained('cpu', 2).model.parameters()))
      },
      1,
    )
  },
)
