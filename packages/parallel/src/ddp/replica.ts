/**
 * Gives all ranks one model: checks parameters and buffers by number, shape and dtype, and copies rank 0's values. Used when a model is made, and for buffers
 * before a forward pass. PyTorch: `_verify_param_shape_across_processes`, `_sync_module_states`.
 */
import { allGatherObject, broadcastCoalesced, ProcessGroup } from '@postgrad/process-group'
import { currentProcessGroups, notInitialized } from '@postgrad/process-group/internal'
import type { DType, TypedArray } from '@postgrad/tensor'
import { argumentText, elementsOf, invalidArgument, raw, Tensor } from '@postgrad/tensor/internal'
import { modelMismatch } from './ddp-errors.js'

export type Named = readonly (readonly [name: string, value: Tensor])[]

/** A tensor of a model, as sent to other ranks. */
type Described = readonly [name: string, dtype: DType, shape: readonly number[], requiresGrad: boolean]

/** Options that must be the same on all ranks. */
export type Settings = Readonly<Record<string, number | boolean>>

/** @throws DDP_MODEL_MISMATCH, on all ranks alike */
export async function verifyReplicas(group: ProcessGroup, tensors: Named, settings: Settings): Promise<void> {
  const own = tensors.map(([name, t]): Described => [name, t.dtype, [...t.shape], t.requiresGrad])
  const all = await allGatherObject({ tensors: own, settings }, { group })
  const { tensors: first, settings: expectedSettings } = all[0]!
  for (const [rank, { tensors: other, settings: theirs }] of all.entries()) {
    for (const [option, expected] of Object.entries(expectedSettings)) {
      const got = theirs[option]
      if (got === expected) continue
      throw modelMismatch(
        `${rankText(group, rank)} has { ${option}: ${got} }, while ${rankText(group, 0)} has { ${option}: ${expected} }`,
        {
          rank,
          ...{ option, expected, got },
        },
      )
    }
    if (other.length !== first.length) {
      throw modelMismatch(
        `${rankText(group, 0)} has ${first.length} params and buffers, while ${rankText(group, rank)} has ${other.length}`,
        { rank, counts: all.map(({ tensors: { length } }) => length) },
      )
    }
    for (const [i, theirs] of other.entries()) {
      const expected = text(first[i]!)
      const got = text(theirs)
      if (got === expected) continue
      throw modelMismatch(
        `'${theirs[0]}' (number ${i}) of ${rankText(group, rank)} is ${got}, while '${first[i]![0]}' of ${rankText(group, 0)} is ${expected}`,
        {
          rank,
          parameter: theirs[0],
          number: i,
          expected,
          got,
        },
      )
    }
  }
}

const text = ([, dtype, shape, requiresGrad]: Described): string =>
  `${dtype} [${shape.join(', ')}]${requiresGrad ? '' : ' without a gradient'}`

/** Gives all ranks the values of one. `from`: a rank of the group. A tensor that has the same bits already, and that a graph may have saved, is not written to. */
export async function copyFrom(group: ProcessGroup, from: number, tensors: readonly Tensor[]): Promise<void> {
  if (tensors.length === 0) return
  const isSaved = (t: Tensor): boolean => group.rank !== from && !t.requiresGrad && t.storage.isNeeded
  const received = tensors.map((t) => (isSaved(t) ? Tensor.uninitialized(t.dtype, t.shape, t.storage.memory) : t))
  await broadcastCoalesced(received, group.ranks[from]!, { group })
  for (const [i, t] of tensors.entries()) {
    const other = received[i]!
    if (other === t || hasSameBits(t, other)) continue
    raw.copy_(t, other)
    t.storage.writer = 'broadcastCoalesced'
  }
}

function hasSameBits(a: Tensor, b: Tensor): boolean {
  const bytesOf = ({ buffer, byteOffset, byteLength }: TypedArray): Buffer => Buffer.from(buffer, byteOffset, byteLength)
  return bytesOf(elementsOf(a)).equals(bytesOf(elementsOf(b)))
}

const rankText = ({ workers }: ProcessGroup, rank: number): string => `rank ${rank} (${workers[rank]!.name})`

/** The group that is meant. @throws PROCESS_GROUP_NOT_INITIALIZED, INVALID_ARGUMENT */
export function groupOf(op: string, group: ProcessGroup | undefined): ProcessGroup {
  if (group !== undefined) {
    if (group instanceof ProcessGroup && group.rank >= 0) return group
    throw invalidArgument(op, 'a process group that this worker is a member of', argumentText(group))
  }
  const { defaultGroup } = currentProcessGroups()
  if (defaultGroup !== null) return defaultGroup
  throw notInitialized(op, 'a process group')
}
