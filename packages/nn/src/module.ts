/**
 * Module: a tree of parameters with names, and a forward. What belongs to a module is found in its fields, so that a model is an ordinary class:
 *
 *     class Model extends Module {
 *       readonly rnn = new LSTM(8, 16)
 *       readonly decoder = new Linear(16, 27)
 *       forward(x: Tensor): Tensor { … }
 *     }
 *
 * PyTorch: `torch.nn.Module`. Here `forward` is called directly: there are no hooks around it.
 */
import { isVariable } from '@postgrad/autograd/internal'
import { PostgradError } from '@postgrad/base'
import { isTensor, type Tensor } from '@postgrad/tensor'
import { raw, sameShape } from '@postgrad/tensor/internal'

export type StateDict = Record<string, Tensor>

export abstract class Module {
  /** True from the start; `train` and `eval` switch it for the whole tree. Dropout is what reads it. */
  training = true

  train(mode = true): this {
    this.training = mode
    for (const [, child] of this.namedChildren()) child.train(mode)
    return this
  }

  eval(): this {
    return this.train(false)
  }

  /** All parameters of the tree, each once, depth first in order of their fields. */
  *parameters(): IterableIterator<Tensor> {
    for (const [, parameter] of this.namedParameters()) yield parameter
  }

  /** With their paths: `decoder.weight`. A tensor that is shared by two fields comes once, under its first name. */
  *namedParameters(): IterableIterator<[name: string, parameter: Tensor]> {
    const seen = new Set<Tensor>()
    for (const entry of walk(this, '')) {
      if (seen.has(entry[1])) continue
      seen.add(entry[1])
      yield entry
    }
  }

  /** The modules directly below, with their names; those in an array as `layers.0`. */
  *namedChildren(): IterableIterator<[name: string, child: Module]> {
    for (const [name, value] of fields(this)) if (value instanceof Module) yield [name, value]
  }

  /**
   * This module's own parameters with their names, those in an array as `gains.0`: the fields that are leaves and were made with `requiresGrad`
   * (also if it was switched off since). A module whose parameters' names are not its fields' overrides it.
   */
  *ownParameters(): IterableIterator<[name: string, parameter: Tensor]> {
    for (const [name, value] of fields(this)) if (isTensor(value) && isVariable(value)) yield [name, value]
  }

  /** All parameters by path, shared ones under each of their names. They are the parameters themselves without history, not copies. */
  stateDict(): StateDict {
    return Object.fromEntries([...walk(this, '')].map(([name, parameter]) => [name, parameter.detach()]))
  }

  /**
   * Copies values into the parameters, all or none.
   * @throws STATE_DICT_MISMATCH, which lists missing and unexpected names and other shapes
   */
  loadStateDict(state: Readonly<StateDict>): void {
    const own = new Map(walk(this, ''))
    const missing = [...own.keys()].filter((name) => state[name] === undefined)
    const unexpected = Object.keys(state).filter((name) => !own.has(name))
    const shapes = [...own].filter(([name, { shape }]) => state[name] !== undefined && !sameShape(state[name].shape, shape))
    if (missing.length + unexpected.length + shapes.length > 0) {
      throw mismatch(
        missing,
        unexpected,
        shapes.map(([name, { shape }]) => `${name} is [${shape.join(', ')}], not [${state[name]!.shape.join(', ')}]`),
      )
    }
    for (const [name, parameter] of own) raw.copy_(parameter, state[name]!)
  }

  /** Sets `.grad` of all parameters to null. */
  zeroGrad(): void {
    for (const parameter of this.parameters()) parameter.grad = null
  }
}

/** What a module's fields hold, those in an array one by one. */
function* fields(module: Module): IterableIterator<[name: string, value: unknown]> {
  for (const [name, value] of Object.entries(module)) {
    if (Array.isArray(value)) for (const [place, item] of value.entries()) yield [`${name}.${place}`, item]
    else yield [name, value]
  }
}

function* walk(module: Module, prefix: string): IterableIterator<[string, Tensor]> {
  for (const [name, parameter] of module.ownParameters()) yield [prefix + name, parameter]
  for (const [name, child] of module.namedChildren()) yield* walk(child, `${prefix}${name}.`)
}

function mismatch(missing: readonly string[], unexpected: readonly string[], shapes: readonly string[]): PostgradError {
  const parts = [
    missing.length > 0 && `missing: ${missing.join(', ')}`,
    unexpected.length > 0 && `unexpected: ${unexpected.join(', ')}`,
    shapes.length > 0 && `of another shape: ${shapes.join('; ')}`,
  ]
  return new PostgradError('STATE_DICT_MISMATCH', {
    op: 'loadStateDict',
    message: `the names do not fit this module; ${parts.filter(Boolean).join('; ')}`,
    remedy: 'Load it into a module of the same structure and sizes.',
    values: { missing, unexpected, shapes },
  })
}
