/**
 * A program of views, in-place writes, hooks, custom functions and passes, as data, and a builder that draws its steps from a seed. The kinds of steps
 * are in `steps.fixture.ts`, whole programs in `program.fixture.ts`.
 *
 * Tensors have numbers: those of the leaves come first, then each step numbers its results. A step whose argument is not there (the step before it was
 * refused, or was taken out to shrink the program) is skipped by both sides, so any part of a program is a program.
 */
import { Generator } from '@postgrad/tensor'

export interface Leaf {
  readonly id: number
  readonly dtype: 'float32' | 'float64'
  readonly shape: readonly number[]
  readonly data: readonly number[]
  readonly requiresGrad: boolean
}

export interface Step {
  readonly op: string
  readonly args: readonly number[]
  readonly attrs: readonly unknown[]
  readonly outs: readonly number[]
  /** Under noGrad. */
  readonly quiet?: boolean
}

export interface Program {
  readonly seed: number
  readonly leaves: readonly Leaf[]
  readonly steps: readonly Step[]
}

export type Shape = readonly number[]

const LEAF_SHAPES: readonly Shape[] = [[2, 3], [3], [4], [1, 3], [2, 1], [], [2, 2, 3], [3, 3], [3, 2], [0, 2]]

/** Steps whose results may be views. */
export const VIEWS = [
  'narrow',
  'select',
  'slice',
  'transpose',
  'permute',
  'expand',
  'reshape',
  'flatten',
  'unsqueeze',
  'squeeze',
  'split',
  'chunk',
  'unbind',
  'diagonal',
  'detach',
  'chain',
  'view',
  'contiguous',
  'to',
  'custom:Same',
  'custom:Reshaped',
  'custom:Part',
  'custom:FreshPart',
  'custom:Passes',
  'checkpoint:views',
]

/** Steps that give back the tensor itself if there is nothing to change. */
export const HAND_ON = ['contiguous', 'flatten', 'to']

export const numel = (shape: Shape) => shape.reduce((product, extent) => product * extent, 1)
export const same = (a: Shape, b: Shape) => a.length === b.length && a.every((n, i) => n === b[i])

export function broadcast(a: Shape, b: Shape): Shape | null {
  const out: number[] = []
  for (let i = 1; i <= Math.max(a.length, b.length); i++) {
    const [x, y] = [a.at(-i) ?? 1, b.at(-i) ?? 1]
    if (x !== y && x !== 1 && y !== 1) return null
    out.unshift(x === 1 ? y : x)
  }
  return out
}

/** A program as drawn so far, with the shapes of its tensors. */
export class Builder {
  readonly leaves: Leaf[] = []
  readonly steps: Step[] = []
  readonly shapes: Shape[] = []
  /** Numbers of tensors that some steps leave alone, where PyTorch and postgrad are known to differ (KERNELS.md, "Differs from PyTorch in its graphs"). */
  readonly views = new Set<number>()
  readonly viewed = new Set<number>()
  readonly quietViews = new Set<number>()
  readonly hooked = new Set<number>()
  /** Those that may be their argument itself, of which there may be views. */
  readonly handedOn = new Set<number>()
  private readonly random: Generator

  constructor(seed: number) {
    this.random = new Generator(seed)
  }

  below(n: number): number {
    return this.random.integer(0, n)
  }
  chance(oneIn: number): boolean {
    return this.below(oneIn) === 0
  }
  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }
  real(): number {
    return (this.below(4001) - 2000) / 1000
  }
  reals(n: number): number[] {
    return Array.from({ length: n }, () => this.real())
  }
  index(length: number, extent: number): number[] {
    return Array.from({ length }, () => this.below(extent))
  }

  leaf(): void {
    const shape = this.of(LEAF_SHAPES)
    const dtype = this.chance(4) ? 'float32' : 'float64'
    this.leaves.push({ id: this.shapes.length, dtype, shape, data: this.reals(numel(shape)), requiresGrad: !this.chance(4) })
    this.shapes.push(shape)
  }

  /** The number of a tensor whose shape fits, a later one likelier; null where none fits. */
  pick(fits: (shape: Shape) => boolean = () => true): number | null {
    const ids = this.shapes.map((_, id) => id).filter((id) => fits(this.shapes[id]!))
    return ids.length === 0 ? null : Math.max(this.of(ids), this.of(ids))
  }

  step(op: string, args: readonly number[], attrs: readonly unknown[], shapes: readonly Shape[], loud = false): void {
    const outs = shapes.map((shape) => this.shapes.push(shape) - 1)
    const quiet = !loud && this.chance(9)
    this.steps.push({ op, args, attrs, outs, ...(quiet && { quiet }) })
    if (HAND_ON.includes(op)) for (const id of outs) this.handedOn.add(id)
    if (op === 'hook') this.hooked.add(args[0]!)
    if (!VIEWS.includes(op)) return
    for (const id of args) this.viewed.add(id)
    for (const id of outs) {
      this.views.add(id)
      if (op !== 'detach' && (quiet || args.some((arg) => this.quietViews.has(arg)))) this.quietViews.add(id)
    }
  }
}

export const anyDim = (b: Builder, shape: Shape) => b.below(shape.length)
export const full = (shape: Shape) => shape.length > 0 && numel(shape) > 0
