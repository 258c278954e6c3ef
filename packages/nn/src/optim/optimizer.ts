/** Every optimizer's interface, by which a distributed one drives it. PyTorch: `torch.optim.Optimizer`. */
import type { Tensor } from '@postgrad/tensor'

/** Parameters that share settings. You may change the settings between steps; a scheduler changes `lr`. */
export type ParamGroup<Settings> = { readonly params: readonly Tensor[] } & Settings

/** A parameter group as you pass it to an optimizer. Settings that it leaves out are those of the optimizer. */
export type ParamGroupOptions<Settings> = Partial<Settings> & { readonly params: Iterable<Tensor> }

/** The state that an optimizer keeps for one parameter, such as a running average, by name. */
export type ParamState = Readonly<Record<string, Tensor | number>>

/**
 * The state dict of an optimizer, as plain data and tensors. Parameters have numbers, counted over all groups, so the state fits another copy of the model. It
 * is PyTorch's state dict with names in camelCase: `exp_avg` is `expAvg`, and `param_groups` is `paramGroups`. A counter such as `step` is a number.
 */
export interface OptimizerState<Settings> {
  /** The state of each parameter, by its number. */
  readonly state: Readonly<Record<number, ParamState>>
  /** The settings of each group, and the numbers of its parameters. */
  readonly paramGroups: readonly (Settings & { readonly params: readonly number[] })[]
}

/** The interface of optimizers: `step`, `zeroGrad`, groups with settings, a state dict. PyTorch: `torch.optim.Optimizer`. */
export interface Optimizer<Settings = object> {
  /** The parameter groups with their settings. You may change the settings between steps. */
  readonly paramGroups: readonly ParamGroup<Settings>[]
  /**
   * Changes the parameters in place by their gradients, without recording: by those in `grads` if it is given, else by `.grad`. A parameter without a gradient
   * stays unchanged, and so does its state. `step` does not write to the gradients.
   */
  step(grads?: ReadonlyMap<Tensor, Tensor>): void
  /**
   * Changes settings of all groups. If it throws, nothing is changed. To change one group, write to `paramGroups`, which checks nothing.
   * @throws INVALID_ARGUMENT if a group does not have a setting of that name, or the constructor would refuse the value
   */
  set(settings: Partial<Settings>): void
  /** Sets `.grad` of all parameters to null. */
  zeroGrad(): void
  /** The settings and the state of each parameter, as plain data and tensors. */
  stateDict(): OptimizerState<Settings>
  /** Loads a state dict. @throws STATE_DICT_MISMATCH if the state does not fit */
  loadStateDict(state: OptimizerState<Settings>): void
}
