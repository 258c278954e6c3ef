/**
 * Records operations of several tensors, some of which may be left out, with several results: `linear`, convolutions, normalisations. The
 * forms of `record.ts`, for one and two tensors, are cheaper still.
 *
 *     f(tensor | null, tensor | null, …, attribute, attribute, …) → tensor or [tensor, …]
 *
 * One formula gives the gradients of all tensors, because kernels often compute several at once. A row lists the reads of each gradient, and
 * only these are saved.
 */
import assert from 'node:assert'
import { currentScope } from '@postgrad/base/internal'
import type { Tensor } from '@postgrad/tensor'
import { type ManyRow, type ManySaved, RESULTS, rawOperations } from '@postgrad/tensor/internal'
import type { Grads } from '../graph/hooks.js'
import { type Edge, type InputMeta, isWanted, metaOfOutput, Node, type PassView } from '../graph/node.js'
import { nodeName } from '../graph/op-node.js'
import { operations } from '../graph/recorded.js'
import { SavedVariable } from '../graph/saved-variable.js'
import { gradientEdge, setHistory } from '../graph/variable.js'
import { needsGrad } from './record.js'

type Shape = readonly number[]
type Absent = null | undefined

interface ManySpec {
  readonly name: string
  readonly row: ManyRow<readonly unknown[]>
  /** Per tensor argument: a bit for each thing that its gradient reads; −1 if it has no gradient. */
  readonly masks: readonly number[]
}

type Result = Tensor | readonly Tensor[]

export function recordMany(
  op: string,
  forward: (...args: readonly unknown[]) => Result,
  row: ManyRow<never>,
): (...args: readonly unknown[]) => Result {
  const masks = row.reads.map((reads) => (reads === null ? -1 : reads.reduce((bits, what) => bits | (1 << what), 0)))
  const spec: ManySpec = { name: nodeName(op), row: row as unknown as ManySpec['row'], masks }
  const { at } = row
  return (...args) => {
    const out = forward(...args)
    let wanted = 0
    for (let i = 0; i < masks.length; i++) {
      const arg = args[at === undefined ? i : at[i]!]
      if (masks[i] !== -1 && typeof arg === 'object' && arg !== null && needsGrad(arg as Tensor)) wanted |= 1 << i
    }
    if (wanted !== 0 && currentScope().gradEnabled) record(spec, at === undefined ? args : tensorsFirst(args, at), out, wanted)
    return out
  }
}

/** The arguments with the tensors first, as nodes count them. */
function tensorsFirst(args: readonly unknown[], at: readonly number[]): readonly unknown[] {
  return [...at.map((i) => args[i]), ...args.filter((_, i) => !at.includes(i))]
}

function record(spec: ManySpec, args: readonly unknown[], out: Tensor | readonly Tensor[], wanted: number): void {
  const { masks, row } = spec
  const edges = new Array<Edge | null>(masks.length)
  const shapes = new Array<Shape>(masks.length)
  let reads = 0
  for (let i = 0; i < masks.length; i++) {
    const arg = args[i] as Tensor | Absent
    const want = (wanted & (1 << i)) !== 0
    edges[i] = want ? gradientEdge(arg as Tensor) : null
    shapes[i] = arg === null || arg === undefined ? NO_SHAPE : arg.shape
    if (want) reads |= masks[i]!
  }
  const results = Array.isArray(out) ? (out as readonly Tensor[]) : null
  const count = results === null ? 1 : results.length
  const meta = new Array<InputMeta>(count)
  for (let i = 0; i < count; i++) meta[i] = metaOfOutput(results === null ? (out as Tensor) : results[i]!)
  const node = new ManyNode(spec, edges, meta, shapes, masks.length < args.length ? args.slice(masks.length) : NO_ATTRS)
  const { saved } = node
  for (let i = 0; i < masks.length; i++) {
    const arg = args[i] as Tensor | Absent
    saved[i] = (reads & (1 << i)) !== 0 && arg !== null && arg !== undefined ? new SavedVariable(arg) : null
  }
  const last = row.differentiable ?? count
  for (let i = 0; i < count; i++) {
    const one = results === null ? (out as Tensor) : results[i]!
    if (i < last && (one.dtype === 'float32' || one.dtype === 'float64')) setHistory(one, node, i)
    // Saved with its history, so that under createGraph it leads back here.
    saved[masks.length + i] = (reads & (1 << (RESULTS + i))) !== 0 ? new SavedVariable(one) : null
  }
}

const NO_SHAPE: Shape = []
const NO_ATTRS: readonly unknown[] = []

class ManyNode extends Node implements ManySaved<readonly unknown[]> {
  private readonly spec: ManySpec
  private readonly shapes: readonly Shape[]
  readonly attrs: readonly unknown[]
  /** The arguments, then the results, as far as they are read, which the recorder fills in. */
  readonly saved: (SavedVariable | null)[]

  constructor(
    spec: ManySpec,
    edges: readonly (Edge | null)[],
    meta: readonly InputMeta[],
    shapes: readonly Shape[],
    attrs: readonly unknown[],
  ) {
    super(edges, meta)
    this.spec = spec
    this.shapes = shapes
    this.attrs = attrs
    this.saved = new Array<SavedVariable | null>(edges.length + meta.length)
  }

  get name(): string {
    return this.spec.name
  }

  /** By the table: a formula returns a new tensor, or one that shares its storage with g. */
  override get returnsFresh(): boolean {
    return true
  }

  arg(i: number): Tensor | null {
    return this.saved[i]?.unpack(this.name) ?? null
  }

  tensor(i: number): Tensor {
    const arg = this.arg(i)
    assert(arg !== null, `${this.name} reads argument ${i}, which its row does not name or the caller left out`)
    return arg
  }

  result(i: number): Tensor {
    return this.tensor(this.shapes.length + i)
  }

  needs(i: number): boolean {
    return this.nextEdges[i] !== null
  }

  shape(i: number): Shape {
    return this.shapes[i]!
  }

  override get computesApart(): boolean {
    return this.spec.row.isFused !== true
  }

  apply(grads: Grads, pass: PassView): Grads {
    let arrived = false
    for (let i = 0; i < grads.length; i++) if (grads[i] !== null && grads[i] !== undefined) arrived = true
    if (!arrived) return []
    return this.spec.row.grads(grads, this.partFor(pass), currentScope().gradEnabled ? operations : rawOperations)
  }

  /** This node, of which only the gradients are wanted that the pass needs. */
  private partFor(pass: PassView): ManySaved<readonly unknown[]> {
    if (pass.needed === null || !this.computesApart) return this
    const needs = (i: number): boolean => isWanted(this.nextEdges[i], pass)
    return Object.assign(Object.create(this) as ManyNode, { needs })
  }

  override release(): void {
    const { saved } = this
    for (let i = 0; i < saved.length; i++) saved[i]?.release()
  }
}
