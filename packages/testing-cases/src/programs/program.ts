/**
 * A random distributed program: plain JSON, so that it can be kept in a file, sent to a worker, read by PyTorch's twin of the interpreter
 * (`scripts/golden/dist_programs.py`) and made smaller step by step. `generate.ts` makes programs, `interpret.ts` runs them.
 *
 *   program   params      leaves that live on workers, shared by all that runs there
 *             blocks      functions: block 0 is main, on worker 0; a block calls only blocks of higher number, so every program ends
 *             roots       values of block 0, scalars: where the backward pass begins
 *
 * Values are numbered within a block, its arguments first. A step names what it makes (`out`), so leaving one out needs no renumbering.
 */
import type { DType, Tensor } from '@postgrad/tensor'

export interface TensorType {
  readonly dtype: 'float32' | 'float64'
  readonly shape: readonly number[]
}

export interface Param extends TensorType {
  readonly on: number
  readonly data: readonly number[]
}

export type Step =
  /** The parameter, in a block that runs where it lives. */
  | { readonly k: 'param'; readonly i: number; readonly out: number }
  | { readonly k: 'op'; readonly op: OpName; readonly in: readonly number[]; readonly out: number }
  /** Awaited. Arguments are tensors and references. */
  | { readonly k: 'call'; readonly block: number; readonly in: readonly number[]; readonly outs: readonly number[] }
  /** `out` is a reference to the block's one result, which is not waited for. */
  | { readonly k: 'remote'; readonly block: number; readonly in: readonly number[]; readonly out: number }
  /** The value of a reference. */
  | { readonly k: 'here'; readonly in: readonly [number]; readonly out: number }
  /** A call that fails once its arguments are there; its error is caught. */
  | { readonly k: 'fail'; readonly on: number; readonly in: readonly number[] }
  /** All branches at once, each continuing after its own awaits; afterwards all their values are there. */
  | { readonly k: 'par'; readonly branches: readonly (readonly Step[])[] }
  | BackwardStep

/** Steps of passes, in addition to calls of blocks with passes and branches. */
export type BackwardStep =
  /** A pass of the context; `grads` are those of the roots, null is 1. The graph is needed again if it is kept. */
  | {
      readonly k: 'pass'
      readonly nr: number
      readonly roots: readonly number[]
      readonly grads: readonly (readonly number[] | null)[] | null
      readonly keep: boolean
    }
  /** Reads the gradients of all workers. */
  | { readonly k: 'read' }
  /** Halves them in place, on all workers, as clipping does. */
  | { readonly k: 'write' }

export interface Block {
  readonly on: number
  /** How many arguments. */
  readonly ins: number
  readonly steps: readonly Step[]
  readonly outs: readonly number[]
}

export interface Program {
  readonly workers: number
  /** Where worker 0, 1, … of the program run; default worker0, worker1, … */
  readonly names?: readonly string[]
  readonly params: readonly Param[]
  readonly blocks: readonly Block[]
  readonly roots: readonly number[]
  readonly backward?: readonly Step[]
}

/** A tensor as plain values, in logical order. */
export interface Plain {
  readonly dtype: DType
  readonly shape: readonly number[]
  readonly data: readonly number[]
}

/** By the number of a parameter its gradient, where it has one. */
export type Gradients = Readonly<Record<string, Plain>>

/** Results of a program: the values of its roots and the gradients in the end. */
export interface Outcome {
  readonly roots: readonly Plain[]
  readonly gradients: Gradients
  /** By its `read` steps. */
  readonly read: readonly Gradients[]
  /** By the number of a pass how it ended: the code of its error, null where it ended well. */
  readonly ends: Readonly<Record<string, string | null>>
}

/** The operations; each is smooth, so that PyTorch's rounding and ours lead to neighbouring numbers. */
export const OPS = {
  neg: ([x]) => x.neg(),
  half: ([x]) => x.mul(0.5),
  tanh: ([x]) => x.tanh(),
  sin: ([x]) => x.sin(),
  cos: ([x]) => x.cos(),
  sigmoid: ([x]) => x.sigmoid(),
  sum: ([x]) => x.sum(),
  mean: ([x]) => x.mean(),
  flip: ([x]) => x.transpose(0, 1),
  row: ([x]) => x.select(0, 0),
  flat: ([x]) => x.reshape([-1]),
  detach: ([x]) => x.detach(),
  f32: ([x]) => x.to('float32'),
  f64: ([x]) => x.to('float64'),
  add: ([x, y]) => x.add(y),
  sub: ([x, y]) => x.sub(y),
  mul: ([x, y]) => x.mul(y),
  matmul: ([x, y]) => x.matmul(y),
} satisfies Record<string, (args: readonly [Tensor, Tensor]) => Tensor>

export type OpName = keyof typeof OPS

/** Every step, those in branches too, in their order. */
export function* stepsOf(steps: readonly Step[]): Generator<Step> {
  for (const step of steps) {
    yield step
    if (step.k === 'par') for (const branch of step.branches) yield* stepsOf(branch)
  }
}

/** The main block's steps after forward: by default one pass from all roots. */
export function backwardOf({ roots, backward }: Program): readonly Step[] {
  return backward ?? [{ k: 'pass', nr: 0, roots, grads: null, keep: false }]
}

/** The passes of a program, wherever they begin. */
export function passesOf(program: Program): readonly Extract<Step, { readonly k: 'pass' }>[] {
  const all = [...backwardOf(program), ...program.blocks.flatMap(({ steps }) => steps)]
  return [...stepsOf(all)].filter((step) => step.k === 'pass')
}
