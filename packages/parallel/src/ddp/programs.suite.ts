/**
 * Random programs of data-parallel training: passes in any order, over any parameters. Each is compared with one place that keeps all ranks' gradients and adds
 * them in the order of ranks. A rank may die in the middle.
 */
import assert from 'node:assert'
import { backward } from '@postgrad/autograd'
import { distAutograd } from '@postgrad/dist-autograd'
import { Linear, Module } from '@postgrad/nn'
import { Generator, type Tensor, zeros } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { allReduceHook } from './comm-hooks.js'
import { DistributedDataParallel, type DistributedDataParallelOptions } from './distributed-data-parallel.js'
import { batchOf, lossOf, seeded } from './models.suite.js'

/** Wide ones have gradients that are reduced in place. */
const WIDTHS = [3, 3, 3, 130]
const LAYERS = 3

class Layers extends Module {
  readonly first: Linear
  readonly second: Linear
  readonly third: Linear
  constructor(width: number) {
    super()
    const make = (seed: number) => seeded(seed, () => new Linear(width, width))
    this.first = make(1)
    this.second = make(2)
    this.third = make(3)
  }
  /** `mask`: a bit for each layer that is used; at least one is. */
  forward(x: Tensor, mask: number): Tensor {
    return [this.first, this.second, this.third].reduce((h, layer, i) => ((mask >> i) & 1 ? layer.forward(h).tanh() : h), x)
  }
}

/** One backward pass: what each rank uses in it, and the number of its batches. */
interface Pass {
  readonly masks: readonly number[]
  readonly step: number
}

type Action =
  | { readonly kind: 'zeroGrad' }
  | { readonly kind: 'alone'; readonly passes: readonly Pass[]; readonly isSynchronous: boolean }
  | { readonly kind: 'inContext'; readonly passes: readonly Pass[] }
  /** All forward passes first, then a backward pass for each, or one for all. */
  | { readonly kind: 'together'; readonly passes: readonly Pass[]; readonly inOne: boolean }

export interface Program {
  readonly size: number
  readonly width: number
  readonly options: DistributedDataParallelOptions
  readonly hooked: boolean
  readonly actions: readonly Action[]
}

export function programOf(seed: number, length = 6): Program {
  const generator = new Generator(seed)
  const below = (n: number): number => generator.integer(0, n)
  const size = 1 + below(4)
  const kind = below(3)
  const all = 2 ** LAYERS - 1
  const maskOf = (): number => 1 + below(all)
  const fixed = Array.from({ length: size }, maskOf)
  let steps = 0
  const pass = (): Pass => {
    const masks = kind === 0 ? fixed.map(() => all) : kind === 1 ? fixed.map(maskOf) : fixed
    return { masks, step: steps++ }
  }
  const passes = (): Pass[] => Array.from({ length: 1 + below(2) }, pass)
  const action = (): Action => {
    const which = below(6)
    if (which === 0) return { kind: 'zeroGrad' }
    if (which === 1) return { kind: 'alone', passes: passes(), isSynchronous: below(2) === 0 }
    if (which === 2) return { kind: 'inContext', passes: passes() }
    return { kind: 'together', passes: passes(), inOne: below(2) === 0 && kind !== 1 }
  }
  const limits = below(2) === 0 ? {} : { firstBucketMb: 1e-5, bucketCapMb: below(2) === 0 ? 1e-5 : 1e-4 }
  return {
    size,
    width: WIDTHS[below(WIDTHS.length)]!,
    options: { ...limits, findUnusedParameters: kind === 1, staticGraph: kind === 2, gradientAsBucketView: below(2) === 0 },
    hooked: below(3) === 0,
    actions: Array.from({ length }, action),
  }
}

const lossIn = (forward: (x: Tensor, mask: number) => Tensor | Promise<Tensor>, { masks, step }: Pass, rank: number, width: number) =>
  (async () => lossOf(await forward(batchOf(rank, step, 2, width), masks[rank]!)))()

/** On a rank: `.grad` after each action, or in its place what a context had. */
export async function run({ width, options, hooked, actions }: Program, rank: number): Promise<unknown[]> {
  const model = await DistributedDataParallel.create(new Layers(width), options)
  if (hooked) model.registerCommHook(null, allReduceHook)
  const lossOfPass = (pass: Pass) => lossIn((x, mask) => model.forward(x, mask), pass, rank, width)
  const seen: unknown[] = []
  for (const action of actions) {
    let found: readonly (Tensor | null)[] | null = null
    if (action.kind === 'zeroGrad') model.zeroGrad()
    else if (action.kind === 'alone') {
      await model.noSync(async () => {
        for (const pass of action.passes) {
          const loss = await lossOfPass(pass)
          if (action.isSynchronous) loss.backward()
          else await model.backward(loss)
        }
      })
    } else if (action.kind === 'inContext') {
      found = await distAutograd.context(async (ctx) => {
        for (const pass of action.passes) await ctx.backward([await lossOfPass(pass)])
        const gradients = ctx.gradients()
        return model.parameters().map((p) => gradients.get(p) ?? null)
      })
    } else {
      const losses: Tensor[] = []
      for (const pass of action.passes) losses.push(await lossOfPass(pass))
      if (action.inOne) await model.backward(losses)
      else for (const loss of losses) await model.backward(loss)
    }
    seen.push(shownOf(found ?? model.parameters().map(({ grad }) => grad)))
  }
  return seen
}

/** All elements of small gradients, some of large ones. */
const shownOf = (gradients: readonly (Tensor | null)[]): unknown =>
  gradients.map((grad) => (grad === null ? null : [...grad.dataSync()].filter((_, i) => i < 100 || i % 499 === 0)))

type Gradients = (Tensor | null)[]

/** The same in one place: for each rank, the same list. */
export async function inOnePlace({ size, width, options, actions }: Program): Promise<unknown[][]> {
  const module = new Layers(width)
  const parameters = module.parameters()
  const ranks = [...Array(size).keys()]
  const kept: Gradients[] = ranks.map(() => parameters.map(() => null))
  const used = new Set<number>()
  const always = options.staticGraph === true ? new Set<number>() : null
  let isFirst = true

  const gradientsOf = async (passes: readonly Pass[], rank: number): Promise<Gradients> => {
    module.zeroGrad()
    const losses: Tensor[] = []
    for (const pass of passes) losses.push(await lossIn((x, mask) => module.forward(x, mask), pass, rank, width))
    backward(losses)
    return parameters.map(({ grad }) => (grad === null ? null : raw.clone(grad)))
  }
  const usedIn = (passes: readonly Pass[]): number[] =>
    parameters.flatMap((_, i) => (passes.some(({ masks }) => masks.some((mask) => (mask >> (i >> 1)) & 1)) ? [i] : []))
  const meanOf = (of: readonly Gradients[], i: number): Tensor =>
    of
      .map((each) => (each[i] === null ? zeros(parameters[i]!.shape).detach() : raw.mul(each[i]!, 1 / size)))
      .reduce((sum, part) => raw.add(sum, part))
  const reduced = (of: readonly Gradients[], passes: readonly Pass[], more: ReadonlySet<number>): void => {
    let who = new Set([...usedIn(passes), ...more])
    if (always !== null) {
      if (isFirst) for (const i of who) always.add(i)
      who = always
    }
    isFirst = false
    for (const i of who) {
      const mean = meanOf(of, i)
      for (const each of of) each[i] = mean
    }
  }
  const add = (to: Gradients, grads: Gradients): void => {
    for (const [i, grad] of grads.entries()) {
      const before = to[i]!
      if (grad !== null) to[i] = before === null ? grad : raw.add(before, grad)
    }
  }

  const seen: unknown[][] = ranks.map(() => [])
  for (const action of actions) {
    let shown: readonly Gradients[] = kept
    if (action.kind === 'zeroGrad') {
      for (const each of kept) each.fill(null)
      used.clear()
    } else if (action.kind === 'alone') {
      for (const pass of action.passes) {
        for (const rank of ranks) add(kept[rank]!, await gradientsOf([pass], rank))
        for (const i of usedIn([pass])) used.add(i)
      }
    } else if (action.kind === 'inContext') {
      const context: Gradients[] = ranks.map(() => parameters.map(() => null))
      for (const pass of action.passes) {
        const own: Gradients[] = []
        for (const rank of ranks) own.push(await gradientsOf([pass], rank))
        reduced(own, [pass], new Set())
        for (const rank of ranks) add(context[rank]!, own[rank]!)
      }
      shown = context
    } else {
      for (const passes of action.inOne ? [action.passes] : action.passes.map((pass) => [pass])) {
        for (const rank of ranks) add(kept[rank]!, await gradientsOf(passes, rank))
        reduced(kept, passes, used)
        used.clear()
      }
    }
    for (const rank of ranks) seen[rank]!.push(shownOf(shown[rank]!))
  }
  assert(seen.every(({ length }) => length === actions.length))
  return seen
}
