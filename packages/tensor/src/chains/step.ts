/**
 * A chain: element-wise steps that were recorded and not computed. Each step's result is a pending storage (`heap/storage.ts`), which is computed when somebody asks
 * for its elements, with all that it depends on, in one pass over memory (`kernels/chains/blocks.ts`).
 *
 * Note [What a chain keeps]
 * Steps refer to their operands: other steps, and sources. A source has the elements that a storage held when the step was recorded: a fork of them, or a copy of
 * a few, so a later write or `close` changes nothing here. A step releases its operands when its elements are there, or when it is closed and no step reads it. If
 * neither happens, the collector finds them. A result that is computed while steps read it becomes a source of theirs.
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
import type { DType } from '../values/dtype.js'

/** The elements of a storage, as steps found them. */
export class Source {
  readonly storage: Storage
  /** How many operands of steps they are. */
  users = 0

  constructor(storage: Storage) {
    this.storage = storage
  }

  release(): void {
    if (--this.users === 0 && this.storage.isLeased) this.storage.close()
  }
}

/** A storage with `length` elements as they are now: a later write to `storage`, or its end, leaves them. It belongs to no scope and no formula. */
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

/** Steps of one pass. A longer chain is cut: results in the middle are computed first. */
export const STEPS_MAX = 64
/** Large tensors that a pass of several results reads and writes. */
const STREAMS_MAX = 16
/** How often a step is computed before it counts as one that is computed again and again: once in the forward pass, once in the backward pass. */
const TIMES_MAX = 2
/** So many cheap steps one after the other take about as long as to write a result and to read it. */
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
  /** How many steps it takes at most, this one too, to compute it. */
  readonly size: number
  /** How many operands of steps it is. */
  users = 0
  /** How often it was computed and not written. */
  times = 0
  /** That waits for the elements; null: it is closed. */
  storage: Storage | null
  /** The elements, once they are there, while steps read them. */
  private source: Source | null = null
  /** Empty when nobody can ask for the elements any more, or has them. */
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

  /** Whether to keep the result, which the graph has saved, rather than to compute it again in the backward pass. */
  get isWorthKeeping(): boolean {
    return this.storage?.isNeeded === true && isCostly(this)
  }

  /** Adds this step and all that it needs, operands first; `numbers` knows what has been added. */
  addTo(chain: Chain): number {
    const known = chain.numbers.get(this)
    if (known !== undefined) return known
    const { source, operands, runs } = this
    if (source !== null) return chain.addSource(source, 1)
    const added = operands.map((operand, i) => (operand instanceof Step ? operand.addTo(chain) : chain.addSource(operand, runs[i]!)))
    return chain.addStep(this, added)
  }

  /** Its elements are there. */
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

  /** Adds the steps that would run, and the sources with as many elements. */
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

/** The steps and sources of a program, while it is made. A result's number is that of its step; sources are numbered −1, −2, … until all are known. */
class Chain {
  readonly numbers = new Map<Step, number>()
  readonly order: Step[] = []
  readonly steps: (Omit<ChainStep, 'operands'> & { readonly operands: readonly number[] })[] = []
  readonly sources: ChainSource[] = []
  readonly operands: Operand[] = []
  readonly #places: { readonly source: Source; readonly run: number }[] = []

  addSource(source: Source, run: number): number {
    const found = this.#places.findIndex((place) => place.source === source && place.run === run)
    if (found >= 0) return -1 - found
    const { storage } = source
    this.#places.push({ source, run })
    this.sources.push({ dtype: storage.dtype, period: storage.length, run })
    this.operands.push(dense(storage))
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

/** The steps whose results are written: those that were asked for, those that the backward pass had better read, and some of those that were computed too often. */
function writtenOf(chain: Chain, wanted: readonly Step[]): Step[] {
  const { order, steps } = chain
  const reads = new Int32Array(order.length)
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
  return order.filter((step, i) => {
    const most = steps[i]!.operands.reduce((cost, at) => Math.max(cost, at < 0 ? 0 : costs[at]!), 0)
    const cost = most + (isCostly(step) ? COST_MAX : 1)
    const isAsked = wanted.includes(step) || step.isWorthKeeping
    if (isAsked || (cost >= COST_MAX && step.times >= TIMES_MAX && isAwaited(step, isNewlyRead[i] === 1, reads[i]!))) return true
    costs[i] = cost
    return false
  })
}

/** Whether further passes may need it: `reads` of its users are steps of this pass. */
function isAwaited({ storage, users }: Step, isNewlyRead: boolean, reads: number): boolean {
  return storage?.isNeeded === true || (isNewlyRead && (storage !== null || users > reads))
}

/** Computes the elements of these steps, of one size and one device, in one pass. */
function settleTogether(wanted: readonly Step[]): void {
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

/** Computes the elements of these steps. Those that have steps or large sources in common share a pass, while it is not too large. */
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
    // A pass before may have written some of them.
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

/** Whether to compute it again would take longer than to write the result: where it is a polynomial, or a loop that calls a function of the engine. */
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
