/**
 * Runs a program of `builder.fixture.ts` on postgrad and says what each step did, as `scripts/golden/random_graphs.py` says it of PyTorch: the tensors that it
 * made or wrote, or the kind of the error; at the end every tensor, its gradient, and what each hook has seen.
 */
import { type Tensor, tensor } from '@postgrad/tensor'
import { backward, checkpoint, defineFunction, grad, noGrad } from '../index.js'
import { operations as F } from '../internal.js'
import type { Program, Step } from './builder.fixture.js'

/** A tensor as both sides see it; null where looking at it is an error. */
export interface Seen {
  readonly values: readonly (number | null)[]
  readonly requiresGrad: boolean | null
  readonly isLeaf: boolean | null
  /** Only at the end. */
  readonly grad?: readonly (number | null)[] | null
}

export interface Outcome {
  /** One entry for each step: what it made or wrote, null if it was skipped, or its error. */
  readonly steps: readonly (readonly (Seen | null)[] | { readonly error: string; readonly text: string } | null)[]
  /** The tensors that are there at the end, by number. */
  readonly end: Readonly<Record<number, Seen>>
  /** By the number of the step that registered it: the calls of a hook. */
  readonly hooks: Readonly<Record<number, readonly Call[]>>
  /** If PyTorch refuses a pass because of what it has saved: what comes of it where it saves copies and frees nothing. */
  readonly copied?: Outcome
}

/** One call of a hook: the step whose pass called it, and the gradient that it got. */
export interface Call {
  readonly at: number
  readonly values: readonly (number | null)[]
}

interface Pass {
  readonly gradient: boolean
  readonly retain: boolean
  readonly create: boolean
  readonly unused?: boolean
}

/** An error's code, and the other side's name for it. All others are 'other'. */
const KIND_OF: Readonly<Record<string, string>> = {
  INPLACE_ON_LEAF: 'leaf',
  INPLACE_ON_VIEW: 'view',
  INPLACE_OVERLAP: 'overlap',
  INPLACE_DTYPE: 'dtype',
  SAVED_VARIABLE_MODIFIED: 'modified',
  GRAPH_FREED: 'freed',
  ROOT_REQUIRES_NO_GRAD: 'no grad',
  ROOT_NOT_SCALAR: 'not scalar',
  UNUSED_INPUT: 'unused',
  INPUT_REQUIRES_NO_GRAD: 'no grad',
  HOOK_NEEDS_GRAD: 'hook',
  RETAIN_GRAD_NEEDS_GRAD: 'retain',
  REQUIRES_GRAD_ON_NON_LEAF: 'flag',
  DETACH_VIEW: 'detach',
  INVALID_GRADIENT: 'gradient',
  RAISED: 'raised',
  LEAF_MODIFIED: 'interior',
}

const finite = (x: Tensor) => Array.from(x.dataSync(), (v) => (Number.isFinite(v) ? v : null))
const ints = (values: readonly number[], shape: readonly number[] = [values.length]) => tensor(Int32Array.from(values)).reshape(shape)
/** Weights that both sides know. */
const ramp = (x: Tensor) =>
  tensor(Float64Array.from({ length: x.numel }, (_, i) => Math.sin(1 + i)))
    .reshape(x.shape)
    .to(x.dtype)

const double = (x: Tensor) => x.mul(2)
/** Zeros but for the first of the rows, where `g` is. */
const inFirstRow = (g: Tensor, rows: number) => (rows === 1 ? g : F.cat([g, F.mul(F.cat(Array(rows - 1).fill(g), 0), 0)], 0))

const CUSTOM: Readonly<Record<string, (...args: Tensor[]) => Tensor | readonly Tensor[]>> = {
  Square: defineFunction({
    name: 'Square',
    forward: (ctx, x: Tensor) => {
      ctx.saveForBackward(x)
      return x.mul(x)
    },
    backward: (ctx, g) => g.mul(ctx.savedTensors[0]!).mul(2),
  }),
  Tanh: defineFunction({
    name: 'Tanh',
    forward: (ctx, x: Tensor) => {
      const y = x.tanh()
      ctx.saveForBackward(y)
      return y
    },
    backward: (ctx, g) => g.mul(F.sub(1, ctx.savedTensors[0]!.mul(ctx.savedTensors[0]!))),
  }),
  Same: defineFunction({ name: 'Same', forward: (_, x: Tensor) => x, backward: (_, g) => g.mul(3) }),
  Twice: defineFunction({ name: 'Twice', forward: (_, x: Tensor) => x.mul(2), backward: (_, g) => g.mul(2) }),
  Dirty: defineFunction({
    name: 'Dirty',
    forward: (_, x: Tensor) => {
      x.mul_(2)
      return x.mul(1)
    },
    backward: (_, g) => g.mul(2),
  }),
  Nothing: defineFunction({ name: 'Nothing', forward: (_, x: Tensor) => x.mul(2), backward: () => null }),
  Reshaped: defineFunction({ name: 'Reshaped', forward: (_, x: Tensor) => x.view(x.shape), backward: (_, g) => g.mul(3) }),
  Wrong: defineFunction({ name: 'Wrong', forward: (_, x: Tensor) => x.mul(2), backward: (_, g) => F.stack([g, g, g], 0) }),
  Part: defineFunction({
    name: 'Part',
    forward: (ctx: { state: number | undefined }, x: Tensor) => {
      ctx.state = x.shape[0]!
      return x.narrow(0, 0, 1)
    },
    backward: (ctx, g) => inFirstRow(g, ctx.state!),
  }),
  FreshPart: defineFunction({
    name: 'FreshPart',
    forward: (ctx: { state: number | undefined }, x: Tensor) => {
      ctx.state = x.shape[0]!
      return x.mul(2).narrow(0, 0, 1)
    },
    backward: (ctx, g) => inFirstRow(g.mul(2), ctx.state!),
  }),
  Both: defineFunction({
    name: 'Both',
    forward: (ctx, x: Tensor, y: Tensor) => {
      ctx.saveForBackward(x, y)
      return [x.mul(y), x.add(y)]
    },
    backward: (ctx, product: Tensor, sum: Tensor) => {
      const [x, y] = ctx.savedTensors as [Tensor, Tensor]
      return [product.mul(y).add(sum), product.mul(x).add(sum)]
    },
  }),
  Passes: defineFunction({
    name: 'Passes',
    forward: (_, x: Tensor, y: Tensor) => [x, y.mul(2)],
    backward: (_, first: Tensor, second: Tensor) => [first.mul(3), second.mul(2)],
  }),
  Marked: (x) =>
    (
      defineFunction({
        name: 'Marked',
        forward: (_, x: Tensor) => [x.mul(2), x.gt(0)],
        backward: (_, g: Tensor) => g.mul(2),
      })(x) as readonly Tensor[]
    ).slice(0, 1),
}

const CHECKPOINTS: Readonly<Record<string, (x: Tensor, y: Tensor) => Tensor>> = {
  smooth: (x, y) => x.sin().mul(y.tanh()).exp(),
  writes: (x, y) => {
    const h = x.mul(2)
    h.mul_(y)
    return h.sin_()
  },
  views: (x, y) =>
    x
      .reshape([-1])
      .mul(y.reshape([-1]))
      .reshape(x.shape)
      .tanh(),
  product: (x, y) => x.mul(y),
}

type Make = (args: readonly Tensor[], attrs: readonly unknown[]) => Tensor | readonly Tensor[]

/** The same on both sides: the steps whose call is not `x.name(…tensors, …attributes)`. */
const CALLS: Readonly<Record<string, Make>> = {
  mulNumber: ([x], [n]) => x!.mul(n as number),
  addNumber: ([x], [n]) => x!.add(n as number),
  mulNumber_: ([x], [n]) => x!.mul_(n as number),
  addNumber_: ([x], [n]) => x!.add_(n as number),
  where: ([x, y]) => x!.gt(y!).where(x!.mul(2), y!),
  addcmul: ([x, y]) => x!.addcmul(y!, x!),
  addcmul_: ([x, y]) => x!.addcmul_(y!, y!),
  lerp: ([x, y]) => x!.lerp(y!, 0.3),
  lerp_: ([x, y]) => x!.lerp_(y!, 0.3),
  cat: ([x, y], [dim]) => F.cat([x!, y!], dim as number),
  stack: ([x, y], [dim]) => F.stack([x!, y!], dim as number),
  gather: ([x], [dim, shape, index]) => x!.gather(dim as number, ints(index as number[], shape as number[])),
  indexSelect: ([x], [dim, index]) => x!.indexSelect(dim as number, ints(index as number[])),
  scatter: ([x, y], [dim, shape, index]) => x!.scatter(dim as number, ints(index as number[], shape as number[]), y!),
  scatter_: ([x, y], [dim, shape, index]) => x!.scatter_(dim as number, ints(index as number[], shape as number[]), y!),
  scatterAdd: ([x, y], [dim, shape, index]) => x!.scatterAdd(dim as number, ints(index as number[], shape as number[]), y!),
  scatterAdd_: ([x, y], [dim, shape, index]) => x!.scatterAdd_(dim as number, ints(index as number[], shape as number[]), y!),
  indexAdd: ([x, y], [dim, index]) => x!.indexAdd(dim as number, ints(index as number[]), y!),
  indexAdd_: ([x, y], [dim, index]) => x!.indexAdd_(dim as number, ints(index as number[]), y!),
  indexPut: ([x, y], [index, accumulate]) => x!.indexPut([ints(index as number[])], y!, accumulate as boolean),
  indexPut_: ([x, y], [index, accumulate]) => x!.indexPut_([ints(index as number[])], y!, accumulate as boolean),
  indexFill: ([x], [dim, index, value]) => x!.indexFill(dim as number, ints(index as number[]), value as number),
  indexFill_: ([x], [dim, index, value]) => x!.indexFill_(dim as number, ints(index as number[]), value as number),
  maskedFill: ([x], [mask, value]) => x!.maskedFill(ints(mask as number[], x!.shape).to('bool'), value as number),
  maskedFill_: ([x], [mask, value]) => x!.maskedFill_(ints(mask as number[], x!.shape).to('bool'), value as number),
  chain: ([x], [length]) => Array.from({ length: length as number }).reduce((view: Tensor) => view.view(x!.shape), x!),
  clearGrad: ([x]) => {
    x!.grad = null
    return []
  },
  readGrad: ([x]) => (x!.grad === null ? [] : x!.grad.clone()),
  loss: (args) =>
    args.map((x) => x.to('float64')).reduce((sum: Tensor, x) => sum.add(x.mul(ramp(x)).sum()), tensor(Float64Array.of(0)).sum()),
}

class Run {
  private readonly tensors = new Map<number, Tensor>()
  private readonly hooks: Record<number, Call[]> = {}
  private readonly looks: boolean
  /** The step that runs. */
  private at = 0

  /** @param looks whether the values of each step are read when it has run */
  constructor({ leaves }: Program, looks: boolean) {
    this.looks = looks
    for (const { id, dtype, shape, data, requiresGrad } of leaves) {
      const array = dtype === 'float32' ? Float32Array.from(data) : Float64Array.from(data)
      this.tensors.set(id, tensor(array).reshape(shape).detach().requiresGrad_(requiresGrad))
    }
  }

  all({ steps }: Program): Outcome {
    const outcomes: Outcome['steps'][number][] = []
    let over = false
    for (const [i, step] of steps.entries()) {
      this.at = i
      const args = step.args.map((id) => this.tensors.get(id)).filter((x) => x !== undefined)
      // A loss is of those that are there.
      const isThere = step.op === 'loss' ? args.length > 0 : args.length === step.args.length
      if (over || !isThere) {
        outcomes.push(null)
        continue
      }
      try {
        const made = step.quiet ? noGrad(() => this.step(i, step, args)) : this.step(i, step, args)
        step.outs.forEach((id, at) => {
          if (made[at] !== undefined && made[at] !== null) this.tensors.set(id, made[at])
        })
        const seen = step.op.endsWith('_') ? [args[0]!] : made
        outcomes.push(this.looks ? seen.map((x) => x && this.look(x)) : [])
      } catch (error) {
        const { code, message } = error as { code?: string; message: string }
        outcomes.push({ error: KIND_OF[code ?? ''] ?? 'other', text: `${code ?? ''} ${message}`.split('\n')[0]! })
        // A failed pass's effects are not compared.
        over = step.op === 'backward' || step.op === 'grad'
      }
    }
    const end: Record<number, Seen> = {}
    for (const [id, x] of this.tensors) end[id] = { ...this.look(x), ...(!over && { grad: this.gradOf(x) }) }
    return { steps: outcomes, end, hooks: over ? {} : this.hooks }
  }

  private step(i: number, { op, attrs }: Step, args: readonly Tensor[]): readonly (Tensor | null)[] {
    const [x, ...others] = args as [Tensor, ...Tensor[]]
    if (op === 'hook') {
      this.hook(i, x, attrs[0] as string)
      return []
    }
    if (op === 'backward' || op === 'grad') {
      const { gradient, retain, create, unused } = attrs[0] as Pass
      const options = { retainGraph: retain || create, createGraph: create }
      const given = gradient ? ramp(x) : null
      if (op === 'grad') {
        const found = grad(x, others, { ...options, allowUnused: unused === true, ...(given && { gradOutputs: [given] }) })
        // Gradients may share their memory, with each other too: what is written into is a copy.
        return found.map((g) => g?.clone() ?? null)
      }
      backward(x, given, { ...options, ...(others.length > 0 && { inputs: others }) })
      return []
    }
    const [kind, name] = op.split(':') as [string, string]
    const call: Make =
      kind === 'custom'
        ? (tensors) => CUSTOM[name]!(...tensors)
        : kind === 'checkpoint'
          ? (tensors) => checkpoint(CHECKPOINTS[name]!, tensors[0]!, tensors[1]!)
          : (CALLS[op] ??
            (([self, ...rest], more) => (self as unknown as Record<string, (...all: unknown[]) => Tensor>)[op]!(...rest, ...more)))
    const made = call(args, attrs)
    return Array.isArray(made) ? made : op.endsWith('_') || op === 'retainGrad' ? [] : [made as Tensor]
  }

  private hook(i: number, x: Tensor, kind: string): void {
    x.registerHook((g) => {
      this.hooks[i] = [...(this.hooks[i] ?? []), { at: this.at, values: finite(g) }]
      if (kind === 'raise') throw Object.assign(new Error('raised'), { code: 'RAISED' })
      return kind === 'double' ? double(g) : undefined
    })
  }

  private look(x: Tensor): Seen {
    const attempt = <T>(get: () => T): T | null => {
      try {
        return get()
      } catch {
        return null
      }
    }
    return { values: finite(x), requiresGrad: attempt(() => x.requiresGrad), isLeaf: attempt(() => x.isLeaf) }
  }

  private gradOf(x: Tensor): (Seen['grad'] & {}) | null {
    return x.grad === null ? null : finite(x.grad)
  }
}

export function runProgram(program: Program): Outcome {
  return new Run(program, true).all(program)
}

/** The same, but values are read at the end alone. */
export function runUnseen(program: Program): Outcome {
  return new Run(program, false).all(program)
}
