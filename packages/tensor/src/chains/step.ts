/**
 * A chain: element-wise steps that were recorded and not computed. Each step's result is a pending storage (`heap/storage.ts`), which is computed when somebody asks
 * for its elements, with all that it depends on, in one pass over memory (`kernels/chains/blocks.ts`).
 *
 * Note [What a chain keeps]
 * Steps refer to their operands: other steps, and sources. A source is what a storage held when the step was recorded: a `lend` of it, so a later write or `close`
 * changes nothing here. A step gives its operands back when its elements are there, or when nobody can ask for them: it is closed and no step reads it. Else the
 * collector finds them. A result that is computed while steps read it becomes a source of theirs.
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

/** How a source lies over the elements of a step: see `ChainSource`. */
export interface Layout {
  readonly offset: number
  readonly period: number
  readonly run: number
}

export class Step implements Pending {
  readonly form: Form
  readonly op: KernelOp
  readonly dtype: DType
  readonly made: DType
  readonly n: number
  readonly p0: number
  readonly p1: number
  /** Whose kernels compute it. */
  readonly device: Device
  /** How many steps it takes at most, this one too, to compute it. */
  readonly size: number
  /** How many operands of steps it is. */
  users = 0
  /** That waits for the elements; null: it is closed. */
  storage: Storage | null
  /** The elements, once they are there, while steps read them. */
  private source: Source | null = null
  /** Empty when nobody can ask for the elements any more, or has them. */
  private operands: readonly (Step | Source)[]
  private readonly layouts: readonly (Layout | null)[]

  /** `layouts` has one for each source; null: a step, or all elements of a source in their order. */
  constructor(
    { form, op, dtype, made, p0, p1 }: Omit<ChainStep, 'operands'>,
    n: number,
    device: Device,
    operands: readonly (Step | Source)[],
    layouts: readonly (Layout | null)[],
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
    this.layouts = layouts
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
    return this.storage?.isKept === true && isCostly(this)
  }

  /** Adds this step and all that it needs, operands first; `numbers` knows what has been added. */
  addTo(chain: Chain): number {
    const known = chain.numbers.get(this)
    if (known !== undefined) return known
    const { source, operands, layouts, n } = this
    if (source !== null) return chain.addSource(source, WHOLE, n)
    const added = operands.map((operand, i) =>
      operand instanceof Step ? operand.addTo(chain) : chain.addSource(operand, layouts[i] ?? WHOLE, n),
    )
    return chain.addStep(this, added)
  }

  /** Its elements are there. */
  receive(elements: Storage): void {
    const { storage } = this
    if (storage === null) return
    storage.receive(elements)
    if (this.users > 0) {
      this.source = new Source(storage.lend())
      this.source.users = 1
    }
    this.storage = null
    this.releaseOperands()
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
const WHOLE: Layout = { offset: 0, period: -1, run: 1 }

/** The steps and sources of a program, while it is made. A result's number is that of its step; sources are numbered −1, −2, … until all are known. */
class Chain {
  readonly numbers = new Map<Step, number>()
  readonly order: Step[] = []
  readonly steps: (Omit<ChainStep, 'operands'> & { readonly operands: readonly number[] })[] = []
  readonly sources: ChainSource[] = []
  readonly operands: Operand[] = []
  readonly #places: { readonly source: Source; readonly layout: Layout }[] = []

  addSource(source: Source, layout: Layout, n: number): number {
    const found = this.#places.findIndex((place) => place.source === source && isSame(place.layout, layout))
    if (found >= 0) return -1 - found
    const { storage } = source
    const { offset, run } = layout
    const period = layout.period < 0 ? n : layout.period
    this.#places.push({ source, layout })
    this.sources.push({ dtype: storage.dtype, period, run })
    this.operands.push(dense(storage, offset, period))
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

function isSame(a: Layout, b: Layout): boolean {
  return a.offset === b.offset && a.period === b.period && a.run === b.run
}

function dense(storage: Storage, offset: number, numel: number): Operand {
  return { storage, offset, shape: [numel], strides: [1], dtype: storage.dtype, numel, isContiguous: true }
}

/** Computes the elements of these steps, of one size and one device, in one pass. */
export function settleTogether(steps: readonly Step[]): void {
  const chain = new Chain()
  for (const step of steps) step.addTo(chain)
  const [{ n, device }] = steps as [Step]
  const results = chain.order.filter((step) => steps.includes(step) || step.isWorthKeeping)
  outsideOfScopes(() => {
    const elements = results.map(({ made }) => Storage.uninitialized(made, n, CPU))
    const program = {
      n,
      sources: chain.sources,
      steps: chain.numbered(),
      outputs: results.map((step) => chain.numbers.get(step)!),
    }
    const outputs = elements.map((storage) => dense(storage, 0, n))
    const run = () => runBlocks(program, chain.operands, outputs, device.implementation)
    if (tracing === null) run()
    else inSpan('kernel', 'chain', { device: device.spec, dtype: results[0]!.made, variant: `${chain.order.length} steps` }, run)
    for (const [i, step] of results.entries()) step.receive(elements[i]!)
  })
}

/** Computes the elements of these steps. */
export function settleAll(steps: readonly Step[]): void {
  const left = new Set(steps)
  for (const first of left) {
    const alike = [...left].filter((step) => step.n === first.n && step.device === first.device)
    for (const step of alike) left.delete(step)
    settleTogether(alike)
  }
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
