/**
 * An optimizer's state as PyTorch has it, in a form that fits into one file of safetensors: tensors by `state.<place>.<name>`, the groups as text.
 *
 *     const { tensors, metadata } = toTorchOptimizerState(optimizer.stateDict())
 *     await saveSafetensors('optimizer.safetensors', tensors, { metadata })
 *
 * and in Python
 *
 *     with safe_open("optimizer.safetensors", "pt") as f:
 *         state = collections.defaultdict(dict)
 *         for key in f.keys():
 *             _, place, name = key.split(".")
 *             state[int(place)][name] = f.get_tensor(key)
 *         optimizer.load_state_dict({"state": dict(state), "param_groups": json.loads(f.metadata()["param_groups"])})
 *
 * Names are PyTorch's (`exp_avg`, `weight_decay`); here they are the same in camelCase.
 */
import { isTensor, type Tensor, tensor } from '@postgrad/tensor'
import { invalidArgument } from '@postgrad/tensor/internal'
import type { StateDict } from '../module/module.js'
import type { OptimizerState, ParamState } from './optimizer.js'

/** An optimizer's state in PyTorch's layout, as tensors and text that fit into a safetensors file. */
export interface TorchOptimizerState {
  /** The tensors, with names such as `state.0.exp_avg`. A counter is a float32 tensor []. */
  readonly tensors: Readonly<StateDict>
  /** The text `param_groups`: the groups with their settings, as JSON. */
  readonly metadata: Readonly<Record<string, string>>
}

/** Settings of PyTorch's groups that say how it computes, not what. */
const ONLY_TORCH = ['foreach', 'capturable', 'differentiable', 'fused']

/**
 * Converts the state dict of an optimizer to PyTorch's layout, for `saveSafetensors`. The result has the tensors of `state` themselves, not copies.
 * @example
 * const optimizer = new Adam(new Linear(2, 1).parameters())
 * const { tensors, metadata } = toTorchOptimizerState(optimizer.stateDict())
 * await saveSafetensors('optimizer.safetensors', tensors, { metadata })
 */
export function toTorchOptimizerState<Settings extends object>({ state, paramGroups }: OptimizerState<Settings>): TorchOptimizerState {
  const tensors: [string, Tensor][] = []
  for (const [place, entries] of Object.entries(state)) {
    for (const [name, value] of Object.entries(entries))
      tensors.push([`state.${place}.${snake(name)}`, isTensor(value) ? value : tensor(value)])
  }
  const groups = paramGroups.map((group) => renamed(group, snake))
  return { tensors: Object.fromEntries(tensors), metadata: { param_groups: JSON.stringify(groups) } }
}

/**
 * Converts the state of an optimizer in PyTorch's layout to a state dict for `loadStateDict`. It reads the counters back from the device.
 * @throws INVALID_ARGUMENT if the argument does not have that layout. `loadStateDict` checks whether the state fits the optimizer
 * @example
 * await using file = await openSafetensors('optimizer.safetensors') // written by saveSafetensors
 * const optimizer = new Adam(new Linear(2, 1).parameters())
 * const tensors = await loadSafetensors('optimizer.safetensors')
 * optimizer.loadStateDict(fromTorchOptimizerState({ tensors, metadata: file.metadata }))
 */
export function fromTorchOptimizerState<Settings extends object>({ tensors, metadata }: TorchOptimizerState): OptimizerState<Settings> {
  const op = 'fromTorchOptimizerState'
  const state: Record<number, Record<string, Tensor | number>> = {}
  for (const [key, value] of Object.entries(tensors)) {
    const [, place, name] = /^state\.(\d{1,9})\.(\w+)$/.exec(key) ?? []
    if (place === undefined || name === undefined) throw invalidArgument(op, 'names like state.0.exp_avg', key)
    state[Number(place)] ??= {}
    state[Number(place)]![camel(name)] = COUNTERS.includes(name) ? value.itemSync() : value
  }
  return {
    state: state as Record<number, ParamState>,
    paramGroups: groupsOf(op, metadata.param_groups) as OptimizerState<Settings>['paramGroups'],
  }
}

/** Numbers here, tensors [] in PyTorch. */
const COUNTERS = ['step', 'mu_product']

function groupsOf(op: string, text: string | undefined): unknown {
  let groups: unknown
  try {
    groups = JSON.parse(text ?? '')
  } catch {
    groups = null
  }
  const isGroup = (group: unknown) => typeof group === 'object' && group !== null && Array.isArray((group as { params?: unknown }).params)
  if (!Array.isArray(groups) || !groups.every(isGroup))
    throw invalidArgument(op, 'metadata.param_groups: a list of groups as JSON', String(text))
  return groups.map((group: object) =>
    renamed(Object.fromEntries(Object.entries(group).filter(([name]) => !ONLY_TORCH.includes(name))), camel),
  )
}

function renamed(group: object, rename: (name: string) => string): object {
  return Object.fromEntries(Object.entries(group).map(([name, value]) => [rename(name), value]))
}

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const camel = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
