/**
 * Random programs from a seed, as `program.ts` defines them, with all that a distributed pass may meet: nested calls, calls to oneself, one function called
 * from several places at once, branches that continue after their own awaits, references that are passed on, parameters that many calls use, results that
 * nobody uses, several roots, two dtypes. A tidy program uses everything that a message carries, as FAST demands.
 */
import { Random } from '@postgrad/sim/internal'
import type { Block, OpName, Param, Program, Step, TensorType } from './program.js'

export interface GenerateOptions {
  /** Scalars of float32 only: the cheapest programs in which the order of a sum shows. Default false. */
  readonly scalars?: boolean
  /** Default: half of the seeds are. */
  readonly tidy?: boolean
  /** Default 2 to 5, by the seed. */
  readonly workers?: number
  /** One pass from all roots and nothing else, as the first programs with PyTorch's numbers have it. Default false. */
  readonly single?: boolean
  /** Of each pass at least, up to 6. Default 1. */
  readonly rootsMin?: number
  /** Of the program at least, up to 5 or a few more. Default 1. */
  readonly passesMin?: number
  /** Only passes of the first worker that follow each other, from scalars, without gradients of the roots. Default false. */
  readonly plain?: boolean
}

/** Values stay within it, so that PyTorch's numbers and ours do not run away from each other. */
const BOUND = 32
/** Of call arguments. */
const ARG_BOUND = 4
const CALLS_DEEP = 4
const ROOTS_MAX = 6
const PASSES_MAX = 5
const SHAPES = [[], [2], [3], [2, 2], [2, 3]] as const
/** Bit of `grad` of what a parameter leads to, whatever the arguments are; bit i: if argument i requires grad. */
const ALWAYS = 1 << 30

interface Value {
  readonly id: number
  readonly type: TensorType
  readonly bound: number
  readonly grad: number
  /** Its gradient is asked for by a later step. */
  used: boolean
  /** It has no history of its own, or perhaps none: a parameter, or the value of a reference to one. */
  readonly isLeaf: boolean
  /** From a call or a reference. */
  isRemote: boolean
}

/** Values in sight of a block under construction; each branch has its own. */
interface Sight {
  readonly self: Building
  readonly tensors: Value[]
  readonly refs: Value[]
  readonly steps: Step[]
  /** Branches within branches. */
  readonly deep: number
}

interface Building {
  readonly index: number
  readonly on: number
  /** How many calls lead to it. */
  readonly callsDeep: number
  next: number
}

/** A block that is finished and may be called again. */
interface Signature {
  readonly index: number
  readonly on: number
  readonly ins: readonly { readonly type: TensorType; readonly isRef: boolean }[]
  readonly outs: readonly { readonly type: TensorType; readonly grad: number }[]
}

class Generating {
  readonly random: Random
  readonly scalars: boolean
  readonly tidy: boolean
  readonly workers: number
  readonly params: Param[] = []
  readonly blocks: Block[] = []
  readonly signatures: Signature[] = []
  readonly options: GenerateOptions
  budget: number
  passes = 0

  constructor(seed: number, options: GenerateOptions) {
    const { scalars = false, tidy, workers } = options
    this.options = options
    this.random = new Random(seed)
    this.scalars = scalars
    this.tidy = tidy ?? this.random.coin()
    this.workers = workers ?? 2 + this.random.below(4)
    this.budget = 4 + this.random.below(20)
    for (let on = 0; on < this.workers; on++) {
      const count = on === 0 ? 1 + this.random.below(2) : this.random.below(3)
      for (let i = 0; i < count; i++) this.params.push(this.param(on))
    }
  }

  param(on: number): Param {
    const shape = this.scalars ? [] : this.pick(SHAPES)
    const dtype = this.scalars || this.random.below(4) > 0 ? 'float32' : 'float64'
    const numel = shape.reduce<number>((n, extent) => n * extent, 1)
    // Few digits: their binary form has all of them.
    return { on, dtype, shape, data: this.numbers(numel) }
  }

  numbers(count: number): number[] {
    return Array.from({ length: count }, () => (this.random.below(2999) - 1499) / 1000)
  }

  pick<T>(list: readonly T[]): T {
    return list[this.random.below(list.length)] as T
  }

  chance(percent: number): boolean {
    return this.random.below(100) < percent
  }

  program(): Program {
    const sight = this.begin(0, 0, [])
    this.take(sight, 0)
    this.fill(sight, 3 + this.random.below(8))
    if (this.tidy) this.useUnused(sight)
    const roots: number[] = []
    for (const value of [this.last(sight), ...(this.chance(30) ? [this.last(sight, 2), this.last(sight, 3)] : [])]) {
      roots.push(this.root(sight, value))
    }
    // Each unused value in between becomes a root.
    if (this.tidy) for (const value of sight.tensors) if (!value.used && !roots.includes(value.id)) roots.push(this.root(sight, value))
    const distinct = [...new Set(roots)]
    const backward = this.options.single === true ? null : this.backward(sight, distinct)
    this.blocks[0] = { on: 0, ins: 0, steps: sight.steps, outs: [] }
    return { workers: this.workers, params: this.params, blocks: this.blocks, roots: distinct, ...(backward && { backward }) }
  }

  /** Passes one after the other, here and where they are called, and at once; looks at the gradients between them. */
  backward(sight: Sight, roots: readonly number[]): Step[] {
    const { passesMin = 1, rootsMin = 1, plain = false } = this.options
    const further = this.further(sight, rootsMin - 1 + this.random.below(4))
    const count = passesMin + this.random.below(PASSES_MAX - passesMin + 1)
    const steps: Step[] = []
    while (this.passes < count) {
      const what = this.random.below(100)
      // In a tidy program all roots but those of the last pass have to reach what was sent before.
      const mayServe = !plain && (!this.tidy || this.passes === count - 1)
      if (what < 40 || plain) steps.push(this.pass(sight, roots, further))
      else if (what < 65) steps.push(mayServe ? this.served(sight, roots) : this.pass(sight, roots, further))
      else steps.push({ k: 'par', branches: this.passesAtOnce(sight, roots, further) })
      if (this.chance(35)) steps.push({ k: 'read' })
      if (this.chance(12)) steps.push({ k: 'write' })
    }
    const last = steps.findLastIndex(({ k }) => k !== 'read' && k !== 'write')
    const end = steps[last] as Step
    if (end.k === 'pass') steps[last] = { ...end, keep: false }
    return steps
  }

  /** Scalars of a few values, of remote results where there are some: roots that share parts of their graphs. */
  further(sight: Sight, count: number): number[] {
    const remote = sight.tensors.filter(({ isRemote }) => isRemote)
    const from = remote.length > 1 ? remote : sight.tensors
    const pool = Array.from({ length: 2 + this.random.below(2) }, () => this.pick(from))
    return Array.from({ length: count }, () => {
      const some = pool.filter(() => this.chance(60))
      const scalars = (some.length > 0 ? some : [this.pick(pool)]).map((value) => this.scalar(sight, value))
      return this.root(
        sight,
        scalars.reduce((sum, one) => this.sumOf(sight, sum, one)),
      )
    })
  }

  /** Begun without awaiting each other; each branch may have one more pass after its first. */
  passesAtOnce(sight: Sight, roots: readonly number[], further: readonly number[]): Step[][] {
    return Array.from({ length: 2 + this.random.below(3) }, () => {
      const first = this.tidy || this.chance(60) ? this.pass(sight, roots, further) : this.served(sight, roots)
      return this.chance(30) ? [first, this.pass(sight, roots, further)] : [first]
    })
  }

  /** From 1 to 6 roots, half of them of `all` and `further`, some of them twice; in a tidy program from all of `all` at least. */
  pass(sight: Sight, all: readonly number[], further: readonly number[] = []): Step {
    const { rootsMin = 1, plain = false } = this.options
    const able = sight.tensors.filter(({ grad, isLeaf, type }) => grad !== 0 && !isLeaf && (!plain || type.shape.length === 0))
    const roots = this.tidy ? [...all] : []
    const count = Math.max(roots.length, rootsMin + this.random.below(ROOTS_MAX - rootsMin + 1))
    const typeOf = new Map(sight.tensors.map(({ id, type }) => [id, type]))
    while (roots.length < count) {
      const again = roots.length > 0 && this.chance(20)
      const some = this.chance(50) ? [...all, ...further] : able.map(({ id }) => id)
      roots.splice(this.random.below(roots.length + 1), 0, again ? this.pick(roots) : this.pick(some))
    }
    const grads = roots.map((id) => {
      const { shape } = typeOf.get(id) as TensorType
      return shape.length > 0 || (!plain && this.chance(30)) ? this.numbers(numelOf(shape)) : null
    })
    return { k: 'pass', nr: this.passes++, roots, grads: grads.every((one) => one === null) ? null : grads, keep: true }
  }

  /** A call of a block that begins a pass with what it got. */
  served(sight: Sight, all: readonly number[]): Step {
    const able = sight.tensors.filter(({ grad, isLeaf }) => grad !== 0 && !isLeaf)
    const given = this.tidy
      ? able.filter(({ id }) => all.includes(id))
      : Array.from({ length: 1 + this.random.below(3) }, () => this.pick(able))
    const args = given.map((value) => ({ value, isRef: false }))
    const inner = this.begin(this.random.below(this.workers), 1, args)
    const { self } = inner
    // Arguments require grad.
    for (let count = this.random.below(3); count > 0; count--) this.operation(inner)
    if (this.chance(50)) this.take(inner)
    if (this.chance(50)) this.operation(inner)
    const pass = this.pass(
      inner,
      args.map((_, id) => id),
    )
    this.blocks[self.index] = { on: self.on, ins: args.length, steps: [...inner.steps, pass], outs: [] }
    return { k: 'call', block: self.index, in: args.map(({ value }) => value.id), outs: [] }
  }

  begin(on: number, callsDeep: number, args: readonly { readonly value: Value; readonly isRef: boolean }[]): Sight {
    const index = this.blocks.length
    this.blocks.push({ on, ins: args.length, steps: [], outs: [] })
    const self: Building = { index, on, callsDeep, next: args.length }
    const inside = (isRef: boolean): Value[] =>
      args.flatMap(({ value, isRef: is }, id) =>
        is === isRef ? [{ id, type: value.type, bound: ARG_BOUND, grad: 1 << id, used: isRef, isLeaf: isRef, isRemote: !isRef }] : [],
      )
    return { self, tensors: inside(false), refs: inside(true), steps: [], deep: 0 }
  }

  fill(sight: Sight, steps: number): void {
    for (let i = 0; i < steps && this.budget > 0; i++) this.step(sight)
  }

  step(sight: Sight): void {
    this.budget--
    const { self, tensors, refs, deep } = sight
    const callable = self.callsDeep < CALLS_DEEP && tensors.length > 0
    const what = this.random.below(100)
    if (what < 16 || tensors.length === 0) {
      if (this.take(sight)) return
      if (tensors.length === 0) this.fetch(sight)
    } else if (what < 42 && callable) this.call(sight)
    else if (what < 50 && callable) this.remote(sight)
    else if (what < 56 && refs.length > 0) this.fetch(sight)
    else if (what < 66 && deep < 2) this.branches(sight)
    else if (what < 69 && !this.tidy && callable) {
      sight.steps.push({ k: 'fail', on: this.random.below(this.workers), in: this.args(sight).map(({ value }) => value.id) })
    } else this.operation(sight)
  }

  add(list: Value[], self: Building, type: TensorType, bound: number, grad: number, isLeaf = false): Value {
    const value = { id: self.next++, type, bound, grad, used: false, isLeaf, isRemote: false }
    list.push(value)
    return value
  }

  /** A parameter of the worker; the `nth` of them, or any. */
  take(sight: Sight, nth?: number): boolean {
    const { self } = sight
    const here = this.params.flatMap(({ on }, i) => (on === self.on ? [i] : []))
    if (here.length === 0) return false
    const i = nth === undefined ? this.pick(here) : (here[nth] as number)
    const { dtype, shape } = this.params[i] as Param
    sight.steps.push({ k: 'param', i, out: this.add(sight.tensors, self, { dtype, shape }, 1.5, ALWAYS, true).id })
    return true
  }

  fetch(sight: Sight, ref: Value | undefined = sight.refs.length === 0 ? undefined : this.pick(sight.refs)): void {
    if (ref === undefined) return
    ref.used = true
    const value = this.add(sight.tensors, sight.self, ref.type, ARG_BOUND, ref.grad, ref.isLeaf)
    value.isRemote = true
    sight.steps.push({ k: 'here', in: [ref.id], out: value.id })
  }

  operation(sight: Sight): void {
    const { tensors } = sight
    const x = this.recent(tensors)
    const binary = this.chance(60) && this.binary(sight, x)
    if (binary) return
    const dims = x.type.shape.length
    const ops: OpName[] = ['neg', 'half', 'tanh', 'sin', 'cos', 'sigmoid']
    if (this.chance(8)) ops.splice(0, ops.length, 'detach')
    else if (!this.scalars) {
      if (dims > 0) ops.push('sum', 'mean', 'row')
      if (dims === 2) ops.push('flip', 'flat')
      ops.push(x.type.dtype === 'float32' ? 'f64' : 'f32')
    }
    this.apply(sight, this.pick(ops), x)
  }

  apply(sight: Sight, op: OpName, x: Value): Value {
    const { dtype, shape } = x.type
    const shapes: Partial<Record<OpName, readonly number[]>> = {
      sum: [],
      mean: [],
      row: shape.slice(1),
      flip: [...shape].reverse(),
      flat: [numelOf(shape)],
    }
    const bounds: Partial<Record<OpName, number>> = {
      half: x.bound / 2,
      tanh: 1,
      sin: 1,
      cos: 1,
      sigmoid: 1,
      sum: x.bound * numelOf(shape),
    }
    const bound = bounds[op] ?? x.bound
    if (bound > BOUND) return this.apply(sight, 'tanh', x)
    if (op !== 'detach') x.used = true
    const type = { dtype: op === 'f32' ? 'float32' : op === 'f64' ? 'float64' : dtype, shape: shapes[op] ?? shape } as const
    const value = this.add(sight.tensors, sight.self, type, bound, op === 'detach' ? 0 : x.grad)
    sight.steps.push({ k: 'op', op, in: [x.id], out: value.id })
    return value
  }

  binary(sight: Sight, x: Value): boolean {
    const y = this.chance(15) ? x : this.recent(sight.tensors)
    const product = productShape(x.type.shape, y.type.shape)
    if (product !== null && x.type.dtype === y.type.dtype && this.chance(70)) {
      const bound = x.bound * y.bound * (x.type.shape[1] as number)
      if (bound <= BOUND) return this.combine(sight, 'matmul', x, y, product, bound) !== null
    }
    const shape = broadcast(x.type.shape, y.type.shape)
    if (shape === null) return false
    const op = this.pick(['add', 'sub', 'mul', 'mul'] as const)
    const bound = op === 'mul' ? x.bound * y.bound : x.bound + y.bound
    return bound <= BOUND && this.combine(sight, op, x, y, shape, bound) !== null
  }

  combine(sight: Sight, op: OpName, x: Value, y: Value, shape: readonly number[], bound: number): Value {
    x.used = true
    y.used = true
    // A scalar does not promote what has dimensions.
    const deciding = [x, y].filter(({ type }) => type.shape.length > 0)
    const dtype = (deciding.length > 0 ? deciding : [x, y]).some(({ type }) => type.dtype === 'float64') ? 'float64' : 'float32'
    const value = this.add(sight.tensors, sight.self, { dtype, shape }, bound, x.grad | y.grad)
    sight.steps.push({ k: 'op', op, in: [x.id, y.id], out: value.id })
    return value
  }

  /** One of the last, mostly: programs grow deep. */
  recent(list: readonly Value[]): Value {
    return this.chance(60) ? (list[Math.max(0, list.length - 1 - this.random.below(4))] as Value) : this.pick(list)
  }

  /** Arguments of a call: one to three tensors, and references. */
  args(sight: Sight): { value: Value; isRef: boolean }[] {
    const out: { value: Value; isRef: boolean }[] = []
    for (let count = 1 + this.random.below(3); count > 0; count--) {
      const value = this.recent(sight.tensors)
      out.push({ value: this.bounded(sight, value), isRef: false })
    }
    for (const value of sight.refs) if (this.chance(25)) out.push({ value, isRef: true })
    for (const { value, isRef } of out) if (!isRef) value.used = true
    return out
  }

  call(sight: Sight, again: Signature | null = null): Signature {
    const { self } = sight
    const known = again ?? (this.chance(35) ? this.pickKnown(sight, null) : null)
    const given = known === null ? null : this.argsFor(sight, known)
    const args = given ?? this.args(sight)
    const callee = given !== null ? (known as Signature) : this.block(self, args, 1 + this.random.below(3))
    const outs = callee.outs.map(({ type, grad }) => this.add(sight.tensors, self, type, ARG_BOUND, through(grad, args)))
    for (const out of outs) out.isRemote = true
    sight.steps.push({ k: 'call', block: callee.index, in: args.map(({ value }) => value.id), outs: outs.map(({ id }) => id) })
    return callee
  }

  remote(sight: Sight): void {
    const { self } = sight
    const known = this.chance(35) ? this.pickKnown(sight, 1) : null
    const given = known === null ? null : this.argsFor(sight, known)
    const args = given ?? this.args(sight)
    const callee = given !== null ? (known as Signature) : this.block(self, args, 1)
    const [out] = callee.outs as [Signature['outs'][number]]
    // A reference to a value of this worker is to the value itself.
    const ref = this.add(sight.refs, self, out.type, ARG_BOUND, through(out.grad, args), callee.on === self.on)
    sight.steps.push({ k: 'remote', block: callee.index, in: args.map(({ value }) => value.id), out: ref.id })
  }

  pickKnown({ self }: Sight, outs: number | null): Signature | null {
    const known = this.signatures.filter(({ index, outs: has }) => index > self.index && (outs === null || has.length === outs))
    return known.length === 0 ? null : this.pick(known)
  }

  /** Values in sight that a finished block takes; null if there are none. */
  argsFor(sight: Sight, { ins }: Signature): { value: Value; isRef: boolean }[] | null {
    const out: { value: Value; isRef: boolean }[] = []
    for (const { type, isRef } of ins) {
      const fit = (isRef ? sight.refs : sight.tensors).filter((value) => value.bound <= ARG_BOUND && sameType(value.type, type))
      if (fit.length === 0) return null
      out.push({ value: this.recent(fit), isRef })
    }
    for (const { value, isRef } of out) if (!isRef) value.used = true
    return out
  }

  block(caller: Building, args: readonly { value: Value; isRef: boolean }[], outsMax: number): Signature {
    const sight = this.begin(this.random.below(this.workers), caller.callsDeep + 1, args)
    const { self } = sight
    this.fill(sight, 1 + this.random.below(4))
    const outs: Value[] = []
    while (outs.length < outsMax) {
      const value = this.last(sight, 1 + this.random.below(3))
      outs.push(this.bounded(sight, value))
    }
    for (const value of outs) value.used = true
    if (this.tidy) {
      const rest = this.useUnused(sight)
      if (rest !== null && outsMax > 1) outs.push(rest)
      else if (rest !== null) outs[0] = this.bounded(sight, this.sumOf(sight, outs[0] as Value, rest))
    }
    this.blocks[self.index] = { on: self.on, ins: args.length, steps: sight.steps, outs: outs.map(({ id }) => id) }
    const signature = {
      index: self.index,
      on: self.on,
      ins: args.map(({ value, isRef }) => ({ type: value.type, isRef })),
      outs: outs.map(({ type, grad }) => ({ type, grad })),
    }
    this.signatures.push(signature)
    return signature
  }

  /** Two to four branches; in half of the cases all call one function, so that its parameters meet gradients of equal depth. */
  branches(sight: Sight): void {
    const count = 2 + this.random.below(3)
    const isFan = this.chance(50) && sight.tensors.length > 0 && sight.self.callsDeep < CALLS_DEEP
    let callee: Signature | null = null
    const made: Sight[] = []
    for (let i = 0; i < count; i++) {
      const branch: Sight = { self: sight.self, tensors: [...sight.tensors], refs: [...sight.refs], steps: [], deep: sight.deep + 1 }
      if (isFan) callee = this.call(branch, callee)
      this.fill(branch, 1 + this.random.below(3))
      made.push(branch)
    }
    const [before, refsBefore] = [sight.tensors.length, sight.refs.length]
    for (const branch of made) {
      sight.tensors.push(...branch.tensors.slice(before))
      sight.refs.push(...branch.refs.slice(refsBefore))
    }
    sight.steps.push({ k: 'par', branches: made.map(({ steps }) => steps) })
  }

  /** One value that depends on all that no step has used, fetched first where it is a reference; null if all is used. */
  useUnused(sight: Sight): Value | null {
    for (const ref of sight.refs) if (!ref.used) this.fetch(sight, ref)
    let sum: Value | null = null
    for (const value of sight.tensors.filter(({ used }) => !used)) {
      const scalar = this.scalar(sight, value)
      sum = sum === null ? scalar : this.sumOf(sight, sum, scalar)
    }
    return sum === null ? null : this.bounded(sight, sum)
  }

  scalar(sight: Sight, value: Value): Value {
    return value.type.shape.length === 0 ? value : this.apply(sight, 'mean', value)
  }

  /** x + y where y is a scalar. */
  sumOf(sight: Sight, x: Value, y: Value): Value {
    const limit = BOUND / 2
    const [a, b] = [this.bounded(sight, x, limit), this.bounded(sight, y, limit)]
    return this.combine(sight, 'add', a, b, a.type.shape, a.bound + b.bound)
  }

  /** Halved as often as it takes: what squeezes would leave little of the gradient. */
  bounded(sight: Sight, x: Value, limit = ARG_BOUND): Value {
    return x.bound <= limit ? x : this.bounded(sight, this.apply(sight, 'half', x), limit)
  }

  /** The nth last value, or the first. */
  last({ tensors }: Sight, nth = 1): Value {
    return tensors[Math.max(0, tensors.length - nth)] as Value
  }

  /** A scalar with a history of its own that requires grad: made of `value`, or of the parameter that every main takes first. */
  root(sight: Sight, value: Value): number {
    const from = value.grad !== 0 ? value : (sight.tensors[0] as Value)
    return this.apply(sight, from.type.shape.length === 0 ? 'half' : 'mean', this.bounded(sight, from)).id
  }
}

export function generate(seed: number, options: GenerateOptions = {}): Program {
  return new Generating(seed, options).program()
}

/** Whether a result of a call requires grad, from what its arguments do. */
function through(grad: number, args: readonly { readonly value: Value }[]): number {
  let out = grad & ALWAYS
  args.forEach(({ value }, i) => {
    if ((grad & (1 << i)) !== 0) out |= value.grad
  })
  return out
}

function numelOf(shape: readonly number[]): number {
  return shape.reduce((n, extent) => n * extent, 1)
}

function sameType(a: TensorType, b: TensorType): boolean {
  return a.dtype === b.dtype && String(a.shape) === String(b.shape)
}

function productShape(a: readonly number[], b: readonly number[]): readonly number[] | null {
  return a.length === 2 && b.length === 2 && a[1] === b[0] ? [a[0] as number, b[1] as number] : null
}

/** Null where the shapes do not go together. */
function broadcast(a: readonly number[], b: readonly number[]): readonly number[] | null {
  const [longer, shorter] = a.length >= b.length ? [a, b] : [b, a]
  const at = longer.length - shorter.length
  return shorter.every((extent, i) => extent === longer[at + i]) ? longer : null
}
