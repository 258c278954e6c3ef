/** What every optimizer offers, so that a distributed one can drive it. PyTorch: `torch.optim.Optimizer`. */
import type { Tensor } from '@postgrad/tensor'

/** Parameters that share their settings; the settings may be changed between steps (a schedule sets `lr`). */
export type ParamGroup<Settings> = { readonly params: readonly Tensor[] } & Settings

/** A group as an optimizer is given it: settings that it leaves out are the optimizer's. */
export type ParamGroupOptions<Settings> = Partial<Settings> & { readonly params: Iterable<Tensor> }

/** What an optimizer has gathered about one parameter, by name. */
export type ParamState = Readonly<Record<string, Tensor | number>>

/**
 * Plain data and tensors; parameters by their place over all groups, so that it fits another copy of the model. It is PyTorch's state dict with
 * names in camelCase (`exp_avg` is `expAvg`, `param_groups` is `paramGroups`); a counter such as `step` is a number.
 */
export interface OptimizerState<Settings> {
  /** By the parameter's place over all groups. */
  readonly state: Readonly<Record<number, ParamState>>
  /** The settings of each group, and the places of its parameters. */
  readonly paramGroups: readonly (Settings & { readonly params: readonly number[] })[]
}

/** What every optimizer offers: `step`, `zeroGrad`, groups with settings, a state dict. PyTorch: `torch.optim.Optimizer`. */
export interface Optimizer<Settings = object> {
  /** Its parameters in groups, with their settings, which may be written to between steps. */
  readonly paramGroups: readonly ParamGroup<Settings>[]
  /**
   * Changes the parameters, in place and unrecorded, by their gradients: those of `grads` if it is given, else `.grad`. A parameter that has none
   * is left untouched, and its state too. Does not write to the gradients.
   */
  step(grads?: ReadonlyMap<Tensor, Tensor>): void
  /**
   * Settings of all groups, from here on; all of them or none. For one group alone write to `paramGroups`, which checks nothing.
   * @throws INVALID_ARGUMENT for a name that a group does not have, or a value that the constructor would refuse
   */
  set(settings: Partial<Settings>): void
  /** Sets `.grad` of all parameters to null. */
  zeroGrad(): void
  /** Settings and what was gathered about each parameter, as plain data and tensors. */
  stateDict(): OptimizerState<Settings>
  /** Goes on from a state dict. @throws STATE_DICT_MISMATCH */
  loadStateDict(state: OptimizerState<Settings>): void
}
