/**
 * Gathers the weights of a model on several workers into one safetensors file, which the same model in one place loads. `model-parts.ts` finds the tensors. PyTorch:
 * `get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))`, which holds all of them in the memory of one rank.
 */
import { isPostgradError } from '@postgrad/base'
import type { Module, SaveSafetensorsOptions } from '@postgrad/nn'
import { safetensorsChanged, safetensorsHead, safetensorsIoFailure, safetensorsPath } from '@postgrad/nn/internal'
import { type CallOptions, expose, type RRef } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import type { Tensor } from '@postgrad/tensor'
import { checkOptions } from '@postgrad/tensor/internal'
import { checkpointDiskOf, type DiskFile } from '../checkpoint/disk.js'
import { Limits, PREFIX } from './limits.js'
import { type DistributedModel, moduleOf, type NamedTensor, tensorsOf } from './model-parts.js'

/** Options of `saveModel`. `timeoutMs` limits the whole call; default 0, no limit. If a worker dies, the call fails in any case. */
export interface SaveModelOptions extends SaveSafetensorsOptions, Pick<CallOptions, 'timeoutMs' | 'signal'> {}

/**
 * Saves the weights of a model on several workers in one safetensors file, byte for byte the file that `saveSafetensors(path, model.stateDict())` writes of the same model in one place. One tensor at a time is
 * in this worker's memory. The file appears whole or not at all. Do not write to the model until the promise resolves.
 * Rejects with INVALID_ARGUMENT, TIMEOUT_INVALID, SAFETENSORS_CHANGED (a tensor was written to meanwhile), SAFETENSORS_IO, and as calls do, such as WORKER_DIED, RPC_TIMEOUT and CALL_CANCELLED. PyTorch: `get_model_state_dict` with `full_state_dict`.
 * @param model a module with RemoteModules, a RemoteModule, models by name, or the stages of a pipeline in an array; see `DistributedModel`
 * @example await saveModel('model.safetensors', new RemoteModule('worker1', Linear, [2, 1])) // the program has: expose({ Linear })
 */
export async function saveModel(path: string | URL, model: DistributedModel, options: SaveModelOptions = {}): Promise<void> {
  const op = 'saveModel'
  checkOptions(op, options, ['metadata', 'timeoutMs', 'signal'])
  const { metadata } = options
  const name = safetensorsPath(op, path)
  const limits = new Limits(op, options)
  const { tensors, end } = await tensorsOf(model, limits)
  try {
    const { head, order } = safetensorsHead(op, [...tensors.values()], metadata === undefined ? {} : { metadata })
    await written(name, async (file) => {
      await file.write(head)
      for (const each of order) await file.write(await bytesOf(tensors.get(each)!, limits))
      limits.check()
    })
  } finally {
    end()
  }
}

async function written(path: string, fill: (file: DiskFile) => Promise<void>): Promise<void> {
  try {
    const file = await checkpointDiskOf(currentRuntime()).create(path)
    try {
      await fill(file)
    } catch (error) {
      // The first error is the one to report.
      await file.abort().catch(() => {})
      throw error
    }
    await file.commit()
  } catch (error) {
    const isOfSystem = typeof (error as { syscall?: unknown } | null)?.syscall === 'string' && !isPostgradError(error)
    throw isOfSystem ? safetensorsIoFailure('write', path, error) : error
  }
}

async function bytesOf({ owner, ref, key, version }: NamedTensor, limits: Limits): Promise<Uint8Array> {
  const tensor = await limits.ask(owner, read, [ref, key, version])
  const array = await tensor.data()
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

// --- on the owner

/** @throws SAFETENSORS_CHANGED */
async function read(ref: RRef<Module>, key: string, version: number): Promise<Tensor> {
  const tensor = (await moduleOf('saveModel', ref)).stateDict()[key]
  if (tensor === undefined || tensor.storage.version !== version) throw safetensorsChanged()
  return tensor
}

expose({ [`${PREFIX}read`]: read })
