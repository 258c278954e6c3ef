/**
 * Computes the expected results of the programs of `accumulation.suite.ts`: one place with all weights, and each rank's gradients, follows the ranks' logs. Passes of noSync add up in the order in which they
 * began, all but those that were refused; a reduction takes each rank's gradients, in the order of ranks; an optimizer steps by the means.
 */
import { expect } from '@jest/globals'
import { mseLoss } from '@postgrad/autograd'
import { type Module, Sequential, SGD } from '@postgrad/nn'
import { type Tensor, zeros } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'
import { batchOf, lossOf } from '../ddp/models.suite.js'
import { type AccumulationProgram, type Entry, hexOf, layersOf, pipelineBatchOf, ROWS, SETTINGS, STAGES } from './accumulation.suite.js'
import { pipelineSchedule } from './generators.js'

type Gradients = (Tensor | null)[]

export interface Compared {
  reductions: number
  alone: number
  refused: number
  mistakes: number
  steps: number
}

/** Weights, by the number of steps that made them. */
class Weights {
  readonly module: Module & { forward(x: Tensor): Tensor }
  readonly parameters: readonly Tensor[]
  private readonly optimizer: SGD
  private readonly versions: Tensor[][] = []
  private readonly program: AccumulationProgram

  constructor(program: AccumulationProgram) {
    this.program = program
    this.module = new Sequential(...layersOf(program.width)) as Module as Module & { forward(x: Tensor): Tensor }
    this.parameters = this.module.parameters()
    this.optimizer = new SGD(this.parameters, SETTINGS)
    this.keep()
  }

  get version(): number {
    return this.versions.length - 1
  }

  get latest(): readonly Tensor[] {
    return this.versions.at(-1)!
  }

  step(means: readonly (Tensor | null)[]): void {
    this.take(this.version)
    this.optimizer.step(new Map(means.flatMap((mean, i) => (mean === null ? [] : [[this.parameters[i]!, mean] as const]))))
    this.keep()
  }

  private keep(): void {
    this.versions.push(this.parameters.map((each) => raw.clone(each)))
  }

  private take(version: number): void {
    for (const [i, each] of this.versions[version]!.entries()) raw.copy_(this.parameters[i]!, each)
  }

  /** The gradients that a batch adds to a replica, one after the other. */
  gradientsOf(replica: number, batch: number, version: number): Gradients[] {
    const { kind, width, microbatches, scaleGrads } = this.program
    this.take(version)
    const gradientOf = (loss: Tensor): Gradients => {
      for (const each of this.parameters) each.grad = null
      loss.backward()
      return this.parameters.map(({ grad }) => grad)
    }
    if (kind !== 'pipelines') return [gradientOf(lossOf(this.module.forward(batchOf(replica, batch, ROWS, width))))]
    const { x, target } = pipelineBatchOf(replica, batch, width)
    const rows = ROWS / microbatches
    const parts = Array.from({ length: microbatches }, (_, i) =>
      gradientOf(mseLoss(this.module.forward(x.narrow(0, i * rows, rows)), target.narrow(0, i * rows, rows))),
    )
    if (!scaleGrads || microbatches === 1) return parts
    return [parts.reduce(sum).map((grad) => grad!.div(microbatches))]
  }
}

const sum = (a: Gradients, b: Gradients): Gradients =>
  a.map((grad, i) => (b[i] === null ? grad : grad === null ? b[i]! : raw.add(grad, b[i]!)))

/** One rank, as far as it has been followed. */
class Follower {
  kept: Gradients
  hasAlone = false
  readonly replica: number
  private at = 0
  private begun: { readonly batch: number; readonly version: number; state: 'begun' | 'ended' | 'refused' }[] = []
  private readonly weights: Weights
  private readonly log: readonly Entry[]
  /** Places of the rank's parameters among all. */
  private readonly own: readonly number[]
  private readonly compared: Compared

  constructor(weights: Weights, replica: number, log: readonly Entry[], own: readonly number[], compared: Compared) {
    this.weights = weights
    this.replica = replica
    this.log = log
    this.own = own
    this.compared = compared
    this.kept = weights.parameters.map(() => null)
  }

  /** Up to its next reduction, or to its end: whether there is one. */
  follow(): boolean {
    while (this.at < this.log.length) {
      const entry = this.log[this.at++]!
      if (entry.kind === 'reduced') return true
      this.take(entry)
    }
    return false
  }

  /** Follows the rest until its inputs are used up. */
  followGathered(): void {
    for (let entry = this.log[this.at++]; entry !== undefined && entry.kind !== 'out'; entry = this.log[this.at++])
      if (entry.kind !== 'reduced') this.take(entry)
  }

  private take(entry: Exclude<Entry, { kind: 'reduced' }>): void {
    const { compared } = this
    if (entry.kind === 'out') return
    if (entry.kind === 'begun') this.begun.push({ ...entry, state: 'begun' })
    else if (entry.kind === 'ended' || entry.kind === 'refused') {
      compared[entry.kind === 'ended' ? 'alone' : 'refused']++
      this.begun.find(({ batch }) => batch === entry.batch)!.state = entry.kind
    } else if (entry.kind === 'mistake') {
      compared.mistakes++
      expect(entry.code).toBe('GRADIENTS_NOT_REDUCED')
    } else if (entry.kind === 'zeroed') this.kept.fill(null)
    else if (entry.kind === 'weights') expect(entry.values).toEqual(hexOf(this.own.map((i) => this.weights.latest[i]!)))
    else {
      this.addEnded()
      expect(entry.values).toEqual(hexOf(this.own.map((i) => this.kept[i]!)))
    }
  }

  addEnded(): void {
    for (const { batch, version, state } of this.begun) if (state === 'ended') this.add(batch, version)
    this.begun = this.begun.filter(({ state }) => state === 'begun')
  }

  add(batch: number, version: number): void {
    this.hasAlone = true
    for (const each of this.weights.gradientsOf(this.replica, batch, version)) this.kept = sum(this.kept, each)
  }
}

/** Compares all that the ranks have written down, as far as they came. */
export function compareWithOnePlace(program: AccumulationProgram, logs: readonly (readonly Entry[])[], compared: Compared): void {
  const { places, replicas, counts, rounds, divideByInitialWorldSize, isHooked } = program
  const weights = new Weights(program)
  const followers = logs.map((log, rank) => new Follower(weights, Math.floor(rank / places), log, ownOf(program, rank % places), compared))
  for (const [r, round] of rounds.entries()) {
    const batches = [...round.parts.filter(({ how }) => how === 'beside').map(({ reduced }) => reduced), round.last]
    for (const [b, batch] of batches.entries()) {
      const active = followers.filter(({ replica }) => r < counts[replica]!)
      if (!active.map((follower) => follower.follow()).includes(true)) return
      for (const follower of followers) {
        // A rank without inputs has written down what it has gathered since its last reduction.
        if (!active.includes(follower) && r === counts[follower.replica] && b === 0) follower.followGathered()
        follower.addEnded()
        if (active.includes(follower)) follower.add(batch, weights.version)
      }
      // A hook divides by what it likes: this one by the size of the group.
      const divisor = divideByInitialWorldSize || isHooked || active.length === followers.length ? replicas : active.length
      for (let place = 0; place < places; place++) {
        const same = followers.filter((_, rank) => rank % places === place)
        const means = weights.parameters.map((parameter, i) =>
          same
            .map(({ kept, hasAlone }) => (kept[i] === null || !hasAlone ? zeros(parameter.shape).detach() : raw.mul(kept[i]!, 1 / divisor)))
            .reduce((a, c) => raw.add(a, c)),
        )
        for (const each of same) each.kept = [...means]
      }
      for (const each of followers) each.hasAlone = false
      compared.reductions++
    }
    if (!round.steps) continue
    compared.steps++
    const means = weights.parameters.map((_, i) => followers.find((_, rank) => ownOf(program, rank % places).includes(i))!.kept[i]!)
    weights.step(means)
  }
  for (const follower of followers) expect(follower.follow()).toBe(false)
}

/** Places of the parameters that a place of a replica has, in the order in which it shows them. */
function ownOf({ kind, width, places, schedule, microbatches }: AccumulationProgram, place: number): number[] {
  const counts = layersOf(width).map((layer) => layer.parameters().length)
  const numbersOf = (layer: number): number[] => {
    const start = counts.slice(0, layer).reduce((a, b) => a + b, 0)
    return Array.from({ length: counts[layer]! }, (_, i) => start + i)
  }
  if (kind !== 'pipelines') return counts.flatMap((_, layer) => numbersOf(layer))
  const { rankOf, stages } = pipelineSchedule(schedule, {
    ranks: places,
    microbatches,
    stagesPerRank: schedule === 'ZBVZeroBubble' ? 2 : 1,
  })
  return STAGES[stages]!.flatMap((layers, stage) => (rankOf[stage] === place ? layers.flatMap(numbersOf) : []))
}
