/**
 * The nodes of operations with a row for one or two tensors: their saved values and their formulas. One class for all of them, with fixed
 * fields, because a node is made for every recorded operation.
 */
import { currentScope } from '@postgrad/base/internal'
import type { DType, Tensor } from '@postgrad/tensor'
import { type Formula, type ListRow, type Readable, rawOperations, recording, type Saved } from '@postgrad/tensor/internal'
import type { Grads } from './hooks.js'
import { type Edge, type InputMeta, isWanted, Node, type PassView } from './node.js'
import { operations } from './recorded.js'
import type { SavedVariable } from './saved-variable.js'

/** One bit for each thing a formula may read. */
export const READS = { a: 1, b: 2, index: 4, result: 8 } as const satisfies Record<Readable, number>

type AnyFormula = Formula<never>

/** One row of the table, prepared for recording. */
export interface OpSpec {
  readonly name: string
  readonly gradA: Formula<unknown>['grad']
  readonly gradB: Formula<unknown>['grad'] | null
  /** Each formula's reads, as bits of READS. */
  readonly readsA: number
  readonly readsB: number
}

export function opSpec(op: string, a: AnyFormula, b: AnyFormula | null): OpSpec {
  return {
    name: nodeName(op),
    gradA: a.grad as OpSpec['gradA'],
    gradB: (b?.grad ?? null) as OpSpec['gradB'],
    readsA: bits(a),
    readsB: b === null ? 0 : bits(b),
  }
}

/** `logSoftmax` → `LogSoftmaxBackward`. */
export function nodeName(op: string): string {
  return `${op.charAt(0).toUpperCase()}${op.slice(1)}Backward`
}

function bits({ reads }: AnyFormula): number {
  return reads.reduce((sum, what) => sum | READS[what], 0)
}

const NONE: readonly never[] = []

export class OpNode extends Node implements Saved<unknown> {
  private readonly spec: OpSpec
  // Filled by the recorder in `record.ts`, as far as the wanted formulas read them.
  savedA: SavedVariable | number | null
  savedB: SavedVariable | number | null
  savedIndex: SavedVariable | null
  savedResult: SavedVariable | null
  shapeA: readonly number[]
  shapeB: readonly number[]
  dtypeA: DType
  attrs: readonly unknown[]
  /** Whether its result was a step of a chain: then its formulas record steps, too. */
  isOfChain: boolean

  constructor(spec: OpSpec, nextEdges: readonly (Edge | null)[], inputMeta: readonly InputMeta[], dtypeA: DType) {
    super(nextEdges, inputMeta)
    this.spec = spec
    this.savedA = null
    this.savedB = null
    this.savedIndex = null
    this.savedResult = null
    this.shapeA = NONE
    this.shapeB = NONE
    this.dtypeA = dtypeA
    this.attrs = NONE
    this.isOfChain = false
  }

  get name(): string {
    return this.spec.name
  }

  get a(): Tensor | number {
    return unpack(this.savedA, this)
  }

  get b(): Tensor | number {
    return unpack(this.savedB, this)
  }

  get index(): Tensor {
    return this.savedIndex!.unpack(this.name)
  }

  get result(): Tensor {
    return this.savedResult!.unpack(this.name)
  }

  /** By the table: a formula returns a new tensor, or one that shares its storage with g. */
  override get returnsFresh(): boolean {
    return true
  }

  override get computesApart(): boolean {
    return true
  }

  apply(grads: Grads, pass: PassView): Grads {
    const g = grads[0]
    if (g === null || g === undefined) return NONE
    return this.isOfChain ? recording(() => this.gradients(g, pass)) : this.gradients(g, pass)
  }

  private gradients(g: Tensor, pass: PassView): Grads {
    const { spec, nextEdges } = this
    const ops = currentScope().gradEnabled ? operations : rawOperations
    const gradA = isWanted(nextEdges[0], pass) ? spec.gradA(g, this, ops) : null
    if (nextEdges.length === 1) return [gradA]
    return [gradA, isWanted(nextEdges[1], pass) ? spec.gradB!(g, this, ops) : null]
  }

  override release(): void {
    if (this.savedA !== null && typeof this.savedA !== 'number') this.savedA.release()
    if (this.savedB !== null && typeof this.savedB !== 'number') this.savedB.release()
    this.savedIndex?.release()
    this.savedResult?.release()
  }
}

function unpack(saved: SavedVariable | number | null, node: OpNode): Tensor | number {
  return typeof saved === 'number' ? saved : saved!.unpack(node.name)
}

/** The node of an operation on a list of tensors (`cat`, `stack`); it saves nothing but their shapes. */
export class ListNode extends Node {
  readonly name: string
  private readonly each: ListRow['each']
  private readonly shapes: readonly (readonly number[])[]
  private readonly dim: number

  constructor(
    name: string,
    row: ListRow,
    nextEdges: readonly (Edge | null)[],
    inputMeta: readonly InputMeta[],
    shapes: readonly (readonly number[])[],
    dim: number,
  ) {
    super(nextEdges, inputMeta)
    this.name = name
    this.each = row.each
    this.shapes = shapes
    this.dim = dim
  }

  override get returnsFresh(): boolean {
    return true
  }

  override get computesApart(): boolean {
    return true
  }

  apply(grads: Grads, pass: PassView): Grads {
    const g = grads[0]
    if (g === null || g === undefined) return NONE
    const ops = currentScope().gradEnabled ? operations : rawOperations
    return this.nextEdges.map((edge, i) => (isWanted(edge, pass) ? this.each(g, i, this.shapes, this.dim, ops) : null))
  }
}
