/**
 * A chain: element-wise steps that were recorded and not computed. The result of a step is a pending storage (`heap/storage.ts`). When code asks for its elements,
 * `settleAll` computes them, and all that they depend on, in one pass over memory (`kernels/chains/blocks.ts`).
 *
 * Note [What a chain keeps]
 * The operands of a step are other steps and sources. A source has the elements that a storage held when the step was recorded: a fork of them, or a copy of
 * a few. So a later write or `close` changes no step. A step releases its operands when its elements are computed, and when its storage is closed and no step
 * reads it. If neither happens, the collector finds the operands. A result that is computed while steps read it becomes a source of these steps.
 */
import { inSpan, tracing } from '@postgrad/base/internal'
import { CPU } from '../heap/memory.js'
import { outsideOfScopes, type Pending, Storage } from '../heap/storage.js'
import { runBlocks } from '../kernels/chains/blocks.js'
import type { BinaryDefinition, GradDefinition, UnaryDefinition } from '../kernels/elementwise/definition.js'
import { ROWS } from '../kernels/elementwise/rows.js'
import type { ChainSource, ChainStep, Form } from '../kernels/table/chain.js'
import type { Operand } from '../kernels/table/operands.js'
import type { KernelOp } from '../kernels/table/table.js'
import type { Device } from '../tensor/device.js'
import { assertNotInKernel } from '../tensor/settling.js'
import type { DType } from '../values/dtype.js'

/** The elements that a storage had when a step was recorded. */
export class Source {
  readonly storage: Storage
  /** The same for equal numbers, and for the same elements. */
  readonly key: string
  /** How many steps read it; a step that reads it twice counts twice. */
  users = 0

  constructor(storage: Storage) {
    this.storage = storage
    this.key = storage.length === 1 ? numberKey(storage) : `#${storage.serial}`
  }

  release(): void {
    if (--this.users === 0) this.storage.close()
  }
}

function numberKey({ dtype, host }: Storage): string {
  const value = host![0]!
  return `${dtype} ${Object.is(value, -0) ? '-0' : value}`
}

/** A new storage with `length` elements as they are now, which later writes to `storage` and its `close` leave alone. It belongs to no scope and no formula. */
export function heldOf(storage: Storage, offset: number, length: number): Storage {
  let held: Storage | null = null
  outsideOfScopes(() => {
    held = storage.isSmallPart(length) ? null : storage.fork(offset, length)
    if (held !== null) return
    held = Storage.uninitialized(storage.dtype, length, CPU)
    held.host!.set(storage.host!.subarray(offset, offset + length))
  })
  return held!
}

/** Steps of one pass. Of a longer chain, results in the middle are computed first. */
export const STEPS_MAX = 256
/** Large tensors that a pass of several results reads and writes. */
const STREAMS_MAX = 96
/** How often a step that no graph saved is computed before it counts as one that is computed again and again: once in the forward pass, once in the backward pass. */
const TIMES_MAX = 2
/** To write a result and to read it takes about as long as so many cheap steps. Measured with 10⁶ elements. */
const COST_MAX = 8

export class Step implements Pending {
  readonly form: Form
  readonly op: KernelOp
  readonly dtype: DType
  readonly made: DType
  readonly n: number
  readonly p0: number
  readonly p1: number
  /** The device that computes it. */
  readonly device: Device
  /** How many steps compute it, at most; this one counts. */
  readonly size: number
  /** How many steps read it; a step that reads it twice counts twice. */
  users = 0
  /** How often it was computed and not written. */
  times = 0
  /** The pending storage; null once it has its elements or is closed. */
  storage: Storage | null
  /** The elements, from when they are computed until no step reads them. */
  private source: Source | null = null
  /** Empty once the elements are computed, or no code can ask for them. */
  private operands: readonly (Step | Source)[]
  private readonly runs: readonly number[]

  /** `runs` has one for each source: how often each of its elements is repeated before the next one (`ChainSource`). */
  constructor(
    { form, op, dtype, made, p0, p1 }: Omit<ChainStep, 'operands'>,
    n: number,
    device: Device,
    operands: readonly (Step | Source)[],
    runs: readonly number[],
    size: number,
  ) {
    this.form = form
    this.op = op
    this.dtype = dtype
    this.made = made
    this.p0 = p0
    this.p1 = p1
    this.n = n
    this.device = device
    this.size = size
    this.operands = operands
    this.runs = runs
    for (const operand of operands) operand.users++
    this.storage = Storage.awaiting(made, n, this)
  }

  settle(): void {
    settleAll([this])
  }

  letGo(): void {
    this.storage = null
    if (this.users === 0) this.releaseOperands()
  }

  release(): void {
    this.users--
    if (this.users > 0) return
    this.source?.release()
    this.source = null
    if (this.storage === null) this.releaseOperands()
  }

  private releaseOperands(): void {
    const { operands } = this
    this.operands = NONE
    for (const operand of operands) operand.release()
  }

  /** Adds this step and all that it needs, operands first, to a chain; returns its number there. */
  addTo(chain: Chain): number {
    const known = chain.numbers.get(this)
    if (known !== undefined) return known
    const { source, operands, runs } = this
    if (source !== null) return chain.addSource(source, 1)
    const added = operands.map((operand, i) => (operand instanceof Step ? operand.addTo(chain) : chain.addSource(operand, runs[i]!)))
    return chain.addStep(this, added)
  }

  /** Takes over the computed elements. */
  receive(elements: Storage): void {
    const { storage } = this
    storage?.receive(elements)
    if (this.users > 0) {
      this.source = new Source(storage === null ? elements : heldOf(storage, 0, this.n))
      this.source.users = 1
    } else if (storage === null) elements.close()
    this.storage = null
    this.releaseOperands()
  }

  /** Adds to `into` the steps that would run, and the sources with as many elements as a result. */
  reach(into: Set<Step | Source>): Set<Step | Source> {
    if (this.source !== null) return into.add(this.source)
    if (into.has(this)) return into
    into.add(this)
    for (const operand of this.operands) {
      if (operand instanceof Step) operand.reach(into)
      else if (operand.storage.length === this.n) into.add(operand)
    }
    return into
  }

  /** How many steps would run: a step that several others read runs once. */
  countInto(seen: Set<Step>): number {
    if (this.source !== null || seen.has(this)) return seen.size
    seen.add(this)
    for (const operand of this.operands) if (operand instanceof Step) operand.countInto(seen)
    return seen.size
  }
}

const NONE: readonly never[] = []

/** Collects the steps and sources of a program. While it does, steps have the numbers 0, 1, …, and sources −1, −2, …: how many sources there will be is not known. */
class Chain {
  readonly numbers = new Map<Step, number>()
  readonly order: Step[] = []
  readonly steps: (Omit<ChainStep, 'operands'> & { readonly operands: readonly number[] })[] = []
  readonly sources: ChainSource[] = []
  readonly operands: Operand[] = []
  /** The numbers of sources, by what they are, and how each element is repeated. */
  readonly #places = new Map<string, number>()

  addSource(source: Source, run: number): number {
    const key = `${source.key} ${run}`
    const known = this.#places.get(key)
    if (known !== undefined) return known
    const { storage } = source
    this.sources.push({ dtype: storage.dtype, period: storage.length, run })
    this.operands.push(dense(storage))
    this.#places.set(key, -this.sources.length)
    return -this.sources.length
  }

  addStep(step: Step, operands: readonly number[]): number {
    const { form, op, dtype, made, p0, p1 } = step
    this.numbers.set(step, this.steps.length)
    this.order.push(step)
    this.steps.push({ form, op, dtype, made, operands, p0, p1 })
    return this.steps.length - 1
  }

  numbered(): ChainStep[] {
    const first = this.sources.length
    return this.steps.map((step) => ({ ...step, operands: step.operands.map((from) => (from < 0 ? -1 - from : first + from)) }))
  }
}

function dense(storage: Storage): Operand {
  const { dtype, length } = storage
  return { storage, offset: 0, shape: [length], strides: [1], dtype, numel: length, isContiguous: true }
}

/**
 * The steps whose results are written: those that were asked for, and those that would be computed again for longer than it takes to write and to read them. Of a
 * result that a graph saved, that counts from the first time on, and all the times that it has been computed; of others, from the third time on.
 */
function writtenOf(chain: Chain, wanted: readonly Step[]): Step[] {
  const { order, steps } = chain
  const reads = new Int32Array(order.length)
  // Whether a new step reads it: of several old steps in a row, the last one alone is written.
  const isNewlyRead = new Uint8Array(order.length)
  for (const [i, { operands }] of steps.entries()) {
    for (const at of operands) {
      if (at < 0) continue
      reads[at]!++
      if (order[i]!.times < TIMES_MAX) isNewlyRead[at] = 1
    }
  }
  // The cost to compute each of them again, from sources and written results.
  const costs = new Int32Array(order.length)
  const asked = new Set(wanted)
  return order.filter((step, i) => {
    const { storage, users, times } = step
    const most = steps[i]!.operands.reduce((cost, at) => Math.max(cost, at < 0 ? 0 : costs[at]!), 0)
    const cost = most + (isCostly(step) ? COST_MAX : 1)
    const isSaved = storage !== null && storage.saves > 0 && cost * (times + 1) >= COST_MAX
    const isAwaited = times >= TIMES_MAX && cost >= COST_MAX && isNewlyRead[i] === 1 && (storage !== null || users > reads[i]!)
    if (asked.has(step) || isSaved || isAwaited) return true
    costs[i] = cost
    return false
  })
}

/** Computes the elements of these steps, of one size and one device, in one pass. */
function settleTogether(wanted: readonly Step[]): void {
  assertNotInKernel()
  const chain = new Chain()
  for (const step of wanted) step.addTo(chain)
  const [{ n, device }] = wanted as [Step]
  const written = writtenOf(chain, wanted)
  outsideOfScopes(() => {
    const elements: Storage[] = []
    try {
      for (const { made } of written) elements.push(Storage.uninitialized(made, n, CPU))
      const program = {
        n,
        sources: chain.sources,
        steps: chain.numbered(),
        outputs: written.map((step) => chain.numbers.get(step)!),
      }
      const run = () => runBlocks(program, chain.operands, elements.map(dense), device.implementation)
      if (tracing === null) run()
      else inSpan('kernel', 'chain', { device: device.spec, dtype: written[0]!.made, variant: `${chain.order.length} steps` }, run)
    } catch (error) {
      for (const storage of elements) storage.close()
      throw error
    }
    for (const step of chain.order) step.times++
    // A step's readers first: then nothing is held for them.
    for (let i = written.length - 1; i >= 0; i--) written[i]!.receive(elements[i]!)
  })
}

/** Results that are computed in one pass. */
interface Pass {
  readonly wanted: Step[]
  readonly reached: Set<Step | Source>
}

/** Computes the elements of these steps. Those that have steps or large sources in common share a pass, up to its limits. */
export function settleAll(steps: readonly Step[]): void {
  if (steps.length === 1) {
    settleTogether(steps)
    return
  }
  const passes: Pass[] = []
  const passOf = new Map<Step | Source, Pass>()
  for (const step of new Set(steps)) {
    const own = step.reach(new Set())
    let pass = passFor(step, own, passOf)
    if (pass === null) {
      pass = { wanted: [], reached: new Set() }
      passes.push(pass)
    }
    pass.wanted.push(step)
    for (const one of own) {
      pass.reached.add(one)
      passOf.set(one, pass)
    }
  }
  for (const { wanted } of passes) {
    // An earlier pass may have written some of them.
    const left = wanted.filter(({ storage }) => storage !== null)
    if (left.length > 0) settleTogether(left)
  }
}

function passFor(step: Step, own: ReadonlySet<Step | Source>, passOf: ReadonlyMap<Step | Source, Pass>): Pass | null {
  for (const one of own) {
    const pass = passOf.get(one)
    if (pass !== undefined && pass.wanted[0]!.device === step.device && hasRoom(pass, own)) return pass
  }
  return null
}

function hasRoom({ wanted, reached }: Pass, own: ReadonlySet<Step | Source>): boolean {
  let [steps, streams] = [0, wanted.length + 1]
  const count = (one: Step | Source) => {
    if (one instanceof Step) steps++
    else streams++
  }
  reached.forEach(count)
  for (const one of own) if (!reached.has(one)) count(one)
  return steps <= STEPS_MAX && streams <= STREAMS_MAX
}

/** Whether the step takes longer than to write its result and to read it: a polynomial, or a loop that calls a function of the engine. */
function isCostly({ form, op, dtype }: Step): boolean {
  if (form === 'unary') {
    const { simd }: UnaryDefinition = ROWS.unary[op as keyof typeof ROWS.unary]
    return dtype === 'float32' || dtype === 'float64' ? simd?.[dtype] === undefined : false
  }
  if (form === 'binary') {
    const { simd }: BinaryDefinition = ROWS.binary[op as keyof typeof ROWS.binary]
    return dtype === 'float32' || dtype === 'float64' ? simd?.[dtype] === undefined : false
  }
  const row: GradDefinition | null = form === 'grad' ? ROWS.grad[op as keyof typeof ROWS.grad] : null
  return row !== null && row.loop == null
}
