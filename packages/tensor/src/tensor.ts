/**
 * Tensor: a view (shape, strides, offset) on a storage, with a slot for autograd. It computes nothing itself: methods go through one
 * handler (raw operations until autograd puts its own in place), so this file stands below all operations.
 */
import { PostgradError } from '@postgrad/base'
import { currentDevice } from './device.js'
import type { DType, TypedArray } from './dtype.js'
import { shapeText } from './errors.js'
import { formatTensor } from './format.js'
import { type TensorJson, toJson } from './json.js'
import type { DimsArg, GeluOptions, NanToNumOptions, Ops, SoftplusOptions } from './ops.js'
import type { DivOptions, IsCloseOptions, ValueOptions } from './ops-arithmetic.js'
import type { BackwardPassOptions, GradFunction, GradOps, RemovableHandle } from './ops-grad.js'
import type { AddmmOptions, IndexSpec } from './ops-indexing.js'
import type { CrossEntropyOptions, LossArg, NllLossOptions } from './ops-neural.js'
import type { ReduceOptions, SortOptions, TopkOptions, ValuesAndIndices, VarianceOptions } from './ops-reduce.js'
import { type NestedArray, nest, snapshot } from './read.js'
import { contiguousStrides, isContiguous, numelOf, type Shape, sameShape } from './shape.js'
import { Storage } from './storage.js'

/** What autograd keeps in a tensor; it extends this and narrows the slot. */
export interface AutogradMeta {
  /** True for a leaf that wants a gradient and for every tensor with a history. */
  requiresGrad: boolean
  grad: Tensor | null
  gradFn: object | null
  /** Which of gradFn's forward outputs this tensor is. */
  outputNr: number
}

/** Everything that a tensor's methods call. */
export type OpHandler = Ops<Tensor> & GradOps<Tensor>

/** Set once per thread while modules load: raw operations first, then autograd's. A slot, since this file imports neither. */
let handler: OpHandler | null = null

export function installOpHandler(next: OpHandler): void {
  handler = next
}

export class Tensor {
  // `declare`: plain assignments in the constructor, without a definition to undefined first; a tensor is made on every operation.
  declare readonly storage: Storage
  declare readonly shape: Shape
  /** In elements. */
  declare readonly strides: Shape
  /** In elements, into the storage. */
  declare readonly offset: number
  declare readonly dtype: DType
  declare readonly numel: number
  /** Elements lie densely in row-major order from `offset` on. */
  declare readonly isContiguous: boolean
  /** Autograd's slot; null until autograd fills it. */
  declare autograd: AutogradMeta | null

  /** @internal Operations make tensors; users call `tensor()`, `zeros()`, …. Keeps the arrays: they are never written afterwards. */
  constructor(storage: Storage, shape: Shape, strides: Shape, offset: number, numel: number, contiguous: boolean) {
    this.storage = storage
    this.shape = shape
    this.strides = strides
    this.offset = offset
    this.dtype = storage.dtype
    this.numel = numel
    this.isContiguous = contiguous
    this.autograd = null
  }

  /** @internal A zero-filled contiguous tensor. */
  static empty(dtype: DType, shape: Shape): Tensor {
    const numel = numelOf(shape)
    return new Tensor(Storage.allocate(dtype, numel), shape, contiguousStrides(shape), 0, numel, true)
  }

  /** @internal A contiguous tensor whose elements are whatever lay there: for outputs that a kernel writes whole. */
  static uninitialized(dtype: DType, shape: Shape): Tensor {
    const numel = numelOf(shape)
    return new Tensor(Storage.uninitialized(dtype, numel), shape, contiguousStrides(shape), 0, numel, true)
  }

  /** @internal A contiguous tensor over `array`, which it takes over; array.length is the number of elements. */
  static over(dtype: DType, shape: Shape, array: TypedArray): Tensor {
    return new Tensor(new Storage(dtype, array), shape, contiguousStrides(shape), 0, numelOf(shape), true)
  }

  /** @internal A view on the storage of `base`. */
  static view(base: Tensor, shape: Shape, strides: Shape, offset: number): Tensor {
    return new Tensor(base.storage, shape, strides, offset, numelOf(shape), isContiguous(shape, strides))
  }

  get ndim(): number {
    return this.shape.length
  }

  /** Whether only some rows are stored: such a tensor is a `SparseTensor`. */
  get isSparse(): boolean {
    return false
  }

  get requiresGrad(): boolean {
    return this.autograd?.requiresGrad === true
  }

  get isLeaf(): boolean {
    return this.autograd === null || this.autograd.gradFn === null
  }

  get grad(): Tensor | null {
    return this.autograd === null ? null : this.autograd.grad
  }

  /**
   * Kept as it is, without a copy.
   * @throws GRAD_NOT_REQUIRED on a tensor that autograd does not know (only null can be assigned there), GRAD_MISMATCH for another shape or dtype
   */
  set grad(value: Tensor | null) {
    if (value !== null && !isTensor(value)) {
      throw new PostgradError('INVALID_ARGUMENT', {
        op: 'grad',
        expected: 'a tensor or null',
        got: typeof value,
        remedy: 'Assign null to drop the gradient.',
      })
    }
    if (value !== null && (value.dtype !== this.dtype || !sameShape(value.shape, this.shape))) {
      throw new PostgradError('GRAD_MISMATCH', {
        op: 'grad',
        expected: `a gradient of shape ${shapeText(this.shape)} and dtype ${this.dtype}`,
        got: `shape ${shapeText(value.shape)} and dtype ${value.dtype}`,
        remedy: 'Assign a gradient of the shape and dtype of the tensor that it belongs to.',
        values: { expected: [...this.shape], got: [...value.shape] },
      })
    }
    if (value !== null) value.storage.isKept = true
    if (this.autograd !== null) this.autograd.grad = value
    else if (value !== null) {
      throw new PostgradError('GRAD_NOT_REQUIRED', {
        op: 'grad',
        expected: 'a tensor that requires a gradient',
        got: 'one that does not',
        remedy: 'Call requiresGrad_() first.',
      })
    }
  }

  /** The node of the operation that made this tensor while recording; null for a leaf. */
  get gradFn(): GradFunction<Tensor> | null {
    return this.autograd === null ? null : (this.autograd.gradFn as GradFunction<Tensor> | null)
  }

  /** Whether `retainGrad()` was called on this non-leaf. */
  get retainsGrad(): boolean {
    return ops().retainsGrad(this)
  }

  requiresGrad_(flag = true): this {
    ops().requiresGrad_(this, flag)
    return this
  }

  /**
   * Adds d this / d leaf to `.grad` of every leaf (or of `options.inputs`) that this was computed from.
   * @param gradient of this tensor's shape; may be left out for a scalar
   * @throws see `backward`
   */
  backward(gradient?: Tensor | null, options?: BackwardPassOptions<Tensor>): void {
    ops().backward(this, gradient, options)
  }

  /** The same elements (the storage is shared) without a history. */
  detach(): Tensor {
    return ops().detach(this)
  }

  /** Becomes a leaf that requires no grad. @throws DETACH_VIEW for a view, whose history is its base's */
  detach_(): this {
    ops().detach_(this)
    return this
  }

  /**
   * Lets backward passes add the gradient of this non-leaf to its `.grad`, which is null otherwise; nothing to do for a leaf. After an in-place
   * operation it is the gradient of the new value. Where hooks replace the gradient, those registered earlier come first.
   * @throws RETAIN_GRAD_NEEDS_GRAD
   */
  retainGrad(): this {
    ops().retainGrad(this)
    return this
  }

  /**
   * Calls `hook` with the complete gradient of this tensor in every backward pass that reaches it; what it returns, unless undefined, takes the
   * gradient's place. After an in-place operation it stays with the value that it was registered for.
   * @throws HOOK_NEEDS_GRAD
   */
  registerHook(hook: (grad: Tensor) => Tensor | undefined): RemovableHandle {
    return ops().registerHook(this, hook)
  }

  /**
   * Calls `hook` with this leaf each time that a backward pass has added to its `.grad`. Not in passes that put gradients elsewhere: `grad(…)`,
   * and a distributed pass, which leaves them in its context.
   * @throws HOOK_NEEDS_LEAF
   */
  registerPostAccumulateGradHook(hook: (leaf: Tensor) => void): RemovableHandle {
    return ops().registerPostAccumulateGradHook(this, hook)
  }

  /**
   * Gives this tensor's memory back now, instead of when it is collected. Its views share its storage and its fate. Reading it or computing with
   * it afterwards throws TENSOR_CLOSED; so does a backward pass that needs it. Closing again does nothing. PyTorch: `del`, without the counting.
   */
  close(): void {
    this.storage.close()
  }

  [Symbol.dispose](): void {
    this.storage.close()
  }

  get isClosed(): boolean {
    return this.storage.isClosed
  }

  /** A snapshot in row-major order, once the device has written it. bool gives 0 and 1. */
  async data(): Promise<TypedArray> {
    const device = currentDevice()
    if (!device.synchronous) await device.implementation.settle()
    return this.snapshot()
  }

  /** The only element. @throws NOT_A_SCALAR */
  async item(): Promise<number> {
    this.checkSingle('item')
    return (await this.data())[0]!
  }

  /** As `data()`, now. @throws READ_NOT_SYNCHRONOUS on a device that computes asynchronously */
  dataSync(): TypedArray {
    this.checkSynchronous('dataSync', 'data()')
    return this.snapshot()
  }

  /** @throws NOT_A_SCALAR, READ_NOT_SYNCHRONOUS */
  itemSync(): number {
    this.checkSingle('itemSync')
    this.checkSynchronous('itemSync', 'item()')
    return this.storage.array[this.offset]!
  }

  /** Arrays within arrays, booleans for bool; a 0-d tensor gives its element. @throws READ_NOT_SYNCHRONOUS */
  toArray(): NestedArray {
    this.checkSynchronous('toArray', 'data()')
    return nest<number | boolean>(this.snapshot(), this.shape, this.dtype === 'bool' ? (value) => value !== 0 : (value) => value)
  }

  /**
   * What `JSON.stringify` writes: dtype, shape and data; `tensor(JSON.parse(text))` makes the same tensor of it, without a history.
   * @throws READ_NOT_SYNCHRONOUS
   */
  toJSON(): TensorJson {
    this.checkSynchronous('toJSON', 'data()')
    return toJson(this.snapshot(), this.shape, this.dtype)
  }

  /** As PyTorch prints it; without the elements on a device that computes asynchronously, and once it is closed. */
  toString(): string {
    if (this.isClosed) return `tensor(closed, shape=${shapeText(this.shape)}, dtype=${this.dtype})`
    if (!currentDevice().synchronous) return `tensor(shape=${shapeText(this.shape)}, dtype=${this.dtype})`
    const gradFn = this.gradFn as { name?: unknown } | null
    const suffix = gradFn !== null ? [`gradFn=<${String(gradFn.name)}>`] : this.requiresGrad ? ['requiresGrad=true'] : []
    return formatTensor(this.snapshot(), this.shape, this.dtype, suffix)
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }

  private snapshot(): TypedArray {
    return snapshot(this.storage.array, this.shape, this.strides, this.offset, this.numel, this.isContiguous)
  }

  private checkSingle(op: string): void {
    if (this.numel === 1) return
    throw new PostgradError('NOT_A_SCALAR', {
      op,
      expected: 'a tensor of one element',
      got: `shape ${shapeText(this.shape)}`,
      remedy: 'Reduce it first, or read all of it with data().',
      values: { shape: [...this.shape] },
    })
  }

  private checkSynchronous(op: string, instead: string): void {
    const device = currentDevice()
    if (device.synchronous) return
    throw new PostgradError('READ_NOT_SYNCHRONOUS', {
      op,
      expected: 'a device that computes synchronously',
      got: device.spec,
      remedy: `Use await ${instead}.`,
    })
  }

  // Operations, as functions of the same name (see ops.ts).

  neg(): Tensor {
    return ops().neg(this)
  }
  exp(): Tensor {
    return ops().exp(this)
  }
  log(): Tensor {
    return ops().log(this)
  }
  sqrt(): Tensor {
    return ops().sqrt(this)
  }
  sin(): Tensor {
    return ops().sin(this)
  }
  cos(): Tensor {
    return ops().cos(this)
  }
  tanh(): Tensor {
    return ops().tanh(this)
  }
  sigmoid(): Tensor {
    return ops().sigmoid(this)
  }
  relu(): Tensor {
    return ops().relu(this)
  }
  abs(): Tensor {
    return ops().abs(this)
  }
  sign(): Tensor {
    return ops().sign(this)
  }
  floor(): Tensor {
    return ops().floor(this)
  }
  ceil(): Tensor {
    return ops().ceil(this)
  }
  round(): Tensor {
    return ops().round(this)
  }
  trunc(): Tensor {
    return ops().trunc(this)
  }
  reciprocal(): Tensor {
    return ops().reciprocal(this)
  }
  rsqrt(): Tensor {
    return ops().rsqrt(this)
  }
  square(): Tensor {
    return ops().square(this)
  }
  log1p(): Tensor {
    return ops().log1p(this)
  }
  expm1(): Tensor {
    return ops().expm1(this)
  }
  log2(): Tensor {
    return ops().log2(this)
  }
  log10(): Tensor {
    return ops().log10(this)
  }
  exp2(): Tensor {
    return ops().exp2(this)
  }
  tan(): Tensor {
    return ops().tan(this)
  }
  sinh(): Tensor {
    return ops().sinh(this)
  }
  cosh(): Tensor {
    return ops().cosh(this)
  }
  asin(): Tensor {
    return ops().asin(this)
  }
  acos(): Tensor {
    return ops().acos(this)
  }
  atan(): Tensor {
    return ops().atan(this)
  }
  erf(): Tensor {
    return ops().erf(this)
  }
  leakyRelu(negativeSlope?: number): Tensor {
    return ops().leakyRelu(this, negativeSlope)
  }
  gelu(options?: GeluOptions): Tensor {
    return ops().gelu(this, options)
  }
  silu(): Tensor {
    return ops().silu(this)
  }
  softplus(options?: SoftplusOptions): Tensor {
    return ops().softplus(this, options)
  }
  elu(alpha?: number): Tensor {
    return ops().elu(this, alpha)
  }
  hardtanh(min?: number, max?: number): Tensor {
    return ops().hardtanh(this, min, max)
  }
  relu6(): Tensor {
    return ops().relu6(this)
  }
  logSigmoid(): Tensor {
    return ops().logSigmoid(this)
  }
  mish(): Tensor {
    return ops().mish(this)
  }
  softsign(): Tensor {
    return ops().softsign(this)
  }
  tanhshrink(): Tensor {
    return ops().tanhshrink(this)
  }
  isNaN(): Tensor {
    return ops().isNaN(this)
  }
  isInf(): Tensor {
    return ops().isInf(this)
  }
  isFinite(): Tensor {
    return ops().isFinite(this)
  }
  nanToNum(options?: NanToNumOptions): Tensor {
    return ops().nanToNum(this, options)
  }
  logicalNot(): Tensor {
    return ops().logicalNot(this)
  }
  logicalAnd(other: Tensor): Tensor {
    return ops().logicalAnd(this, other)
  }
  logicalOr(other: Tensor): Tensor {
    return ops().logicalOr(this, other)
  }
  logicalXor(other: Tensor): Tensor {
    return ops().logicalXor(this, other)
  }
  clone(): Tensor {
    return ops().clone(this)
  }
  contiguous(): Tensor {
    return ops().contiguous(this)
  }
  to(dtype: DType): Tensor {
    return ops().to(this, dtype)
  }
  pow(exponent: Tensor | number): Tensor {
    return ops().pow(this, exponent)
  }
  clamp(min?: number | null, max?: number | null): Tensor {
    return ops().clamp(this, min, max)
  }
  add(other: Tensor | number): Tensor {
    return ops().add(this, other)
  }
  sub(other: Tensor | number): Tensor {
    return ops().sub(this, other)
  }
  mul(other: Tensor | number): Tensor {
    return ops().mul(this, other)
  }
  div(other: Tensor | number, options?: DivOptions): Tensor {
    return ops().div(this, other, options)
  }
  floorDivide(other: Tensor | number): Tensor {
    return ops().floorDivide(this, other)
  }
  remainder(other: Tensor | number): Tensor {
    return ops().remainder(this, other)
  }
  fmod(other: Tensor | number): Tensor {
    return ops().fmod(this, other)
  }
  bitwiseAnd(other: Tensor | number): Tensor {
    return ops().bitwiseAnd(this, other)
  }
  bitwiseOr(other: Tensor | number): Tensor {
    return ops().bitwiseOr(this, other)
  }
  bitwiseXor(other: Tensor | number): Tensor {
    return ops().bitwiseXor(this, other)
  }
  atan2(other: Tensor): Tensor {
    return ops().atan2(this, other)
  }
  bitwiseNot(): Tensor {
    return ops().bitwiseNot(this)
  }
  lerp(end: Tensor, weight: Tensor | number): Tensor {
    return ops().lerp(this, end, weight)
  }
  addcmul(a: Tensor, b: Tensor, options?: ValueOptions): Tensor {
    return ops().addcmul(this, a, b, options)
  }
  addcdiv(a: Tensor, b: Tensor, options?: ValueOptions): Tensor {
    return ops().addcdiv(this, a, b, options)
  }
  isclose(other: Tensor, options?: IsCloseOptions): Tensor {
    return ops().isclose(this, other, options)
  }
  allclose(other: Tensor, options?: IsCloseOptions): boolean {
    return ops().allclose(this, other, options)
  }
  equal(other: Tensor): boolean {
    return ops().equal(this, other)
  }
  maximum(other: Tensor | number): Tensor {
    return ops().maximum(this, other)
  }
  minimum(other: Tensor | number): Tensor {
    return ops().minimum(this, other)
  }
  eq(other: Tensor | number): Tensor {
    return ops().eq(this, other)
  }
  ne(other: Tensor | number): Tensor {
    return ops().ne(this, other)
  }
  lt(other: Tensor | number): Tensor {
    return ops().lt(this, other)
  }
  le(other: Tensor | number): Tensor {
    return ops().le(this, other)
  }
  gt(other: Tensor | number): Tensor {
    return ops().gt(this, other)
  }
  ge(other: Tensor | number): Tensor {
    return ops().ge(this, other)
  }
  /** This tensor (bool) chooses: a where it is true, b elsewhere. */
  where(a: Tensor | number, b: Tensor | number): Tensor {
    return ops().where(this, a, b)
  }
  sum(dims?: DimsArg, keepdim?: boolean, options?: ReduceOptions): Tensor {
    return ops().sum(this, dims, keepdim, options)
  }
  mean(dims?: DimsArg, keepdim?: boolean, options?: ReduceOptions): Tensor {
    return ops().mean(this, dims, keepdim, options)
  }
  amax(dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().amax(this, dims, keepdim)
  }
  argmax(dim?: number, keepdim?: boolean): Tensor {
    return ops().argmax(this, dim, keepdim)
  }
  max(): Tensor
  max(dim: number, keepdim?: boolean): ValuesAndIndices<Tensor>
  max(dim?: number, keepdim?: boolean): Tensor | ValuesAndIndices<Tensor> {
    return dim === undefined ? ops().max(this) : ops().max(this, dim, keepdim)
  }
  min(): Tensor
  min(dim: number, keepdim?: boolean): ValuesAndIndices<Tensor>
  min(dim?: number, keepdim?: boolean): Tensor | ValuesAndIndices<Tensor> {
    return dim === undefined ? ops().min(this) : ops().min(this, dim, keepdim)
  }
  argsort(dim?: number, options?: SortOptions): Tensor {
    return ops().argsort(this, dim, options)
  }
  sort(dim?: number, options?: SortOptions): ValuesAndIndices<Tensor> {
    return ops().sort(this, dim, options)
  }
  topk(k: number, dim?: number, options?: TopkOptions): ValuesAndIndices<Tensor> {
    return ops().topk(this, k, dim, options)
  }
  prod(dim?: number, keepdim?: boolean): Tensor {
    return ops().prod(this, dim, keepdim)
  }
  amin(dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().amin(this, dims, keepdim)
  }
  argmin(dim?: number, keepdim?: boolean): Tensor {
    return ops().argmin(this, dim, keepdim)
  }
  var(dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions): Tensor {
    return ops().var(this, dims, keepdim, options)
  }
  std(dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions): Tensor {
    return ops().std(this, dims, keepdim, options)
  }
  logSumExp(dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().logSumExp(this, dims, keepdim)
  }
  norm(p?: number, dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().norm(this, p, dims, keepdim)
  }
  cumsum(dim: number): Tensor {
    return ops().cumsum(this, dim)
  }
  cumprod(dim: number): Tensor {
    return ops().cumprod(this, dim)
  }
  any(dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().any(this, dims, keepdim)
  }
  all(dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().all(this, dims, keepdim)
  }
  countNonzero(dims?: DimsArg): Tensor {
    return ops().countNonzero(this, dims)
  }
  /** [variance, mean] */
  varMean(dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions): [Tensor, Tensor] {
    return ops().varMean(this, dims, keepdim, options)
  }
  matmul(other: Tensor): Tensor {
    return ops().matmul(this, other)
  }
  bmm(other: Tensor): Tensor {
    return ops().bmm(this, other)
  }
  view(shape: readonly number[]): Tensor {
    return ops().view(this, shape)
  }
  reshape(shape: readonly number[]): Tensor {
    return ops().reshape(this, shape)
  }
  transpose(dim0: number, dim1: number): Tensor {
    return ops().transpose(this, dim0, dim1)
  }
  permute(dims: readonly number[]): Tensor {
    return ops().permute(this, dims)
  }
  dot(other: Tensor): Tensor {
    return ops().dot(this, other)
  }
  outer(other: Tensor): Tensor {
    return ops().outer(this, other)
  }
  mv(other: Tensor): Tensor {
    return ops().mv(this, other)
  }
  mm(other: Tensor): Tensor {
    return ops().mm(this, other)
  }
  /** beta · this + alpha · a b. */
  addmm(a: Tensor, b: Tensor, options?: AddmmOptions): Tensor {
    return ops().addmm(this, a, b, options)
  }
  /** beta · this + alpha · a b, batch by batch. */
  baddbmm(a: Tensor, b: Tensor, options?: AddmmOptions): Tensor {
    return ops().baddbmm(this, a, b, options)
  }
  trace(): Tensor {
    return ops().trace(this)
  }
  /** All dimensions in reverse order. */
  get T(): Tensor {
    return ops().permute(
      this,
      this.shape.map((_, i) => this.shape.length - 1 - i),
    )
  }
  expand(shape: readonly number[]): Tensor {
    return ops().expand(this, shape)
  }
  squeeze(dims?: DimsArg): Tensor {
    return ops().squeeze(this, dims)
  }
  unsqueeze(dim: number): Tensor {
    return ops().unsqueeze(this, dim)
  }
  narrow(dim: number, start: number, length: number): Tensor {
    return ops().narrow(this, dim, start, length)
  }
  select(dim: number, index: number): Tensor {
    return ops().select(this, dim, index)
  }
  flatten(startDim?: number, endDim?: number): Tensor {
    return ops().flatten(this, startDim, endDim)
  }
  split(size: number | readonly number[], dim?: number): Tensor[] {
    return ops().split(this, size, dim)
  }
  chunk(count: number, dim?: number): Tensor[] {
    return ops().chunk(this, count, dim)
  }
  unbind(dim?: number): Tensor[] {
    return ops().unbind(this, dim)
  }
  /** Every step-th element of a dimension from start up to (without) end; negative bounds count from the end. A view. */
  slice(dim: number, start?: number | null, end?: number | null, step?: number): Tensor {
    return ops().slice(this, dim, start, end, step)
  }
  /** […, k]: the elements [i, i + offset] of the planes dim1 × dim2. A view. */
  diagonal(offset?: number, dim1?: number, dim2?: number): Tensor {
    return ops().diagonal(this, offset, dim1, dim2)
  }
  /**
   * What stands between the brackets of PyTorch's x[…]: numbers, 'start:end:step' with parts left out, '...', null (a new dimension), int32
   * tensors (which elements) and bool tensors (those where it is true). `x.index(0, '1:', '...', null)`. A view unless there is a tensor.
   * @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH, INVALID_ARGUMENT
   */
  index(...specs: IndexSpec<Tensor>[]): Tensor {
    return ops().index(this, specs)
  }
  /** x with x[specs] = values; see index(). PyTorch: `index_put`. */
  indexPut(specs: readonly IndexSpec<Tensor>[], values: Tensor | number, accumulate?: boolean): Tensor {
    return ops().indexPut(this, specs, values, accumulate)
  }
  /** x[specs] = values, or += with accumulate; see index(). */
  indexPut_(specs: readonly IndexSpec<Tensor>[], values: Tensor | number, accumulate?: boolean): this {
    ops().indexPut_(this, specs, values, accumulate)
    return this
  }
  indexSelect(dim: number, index: Tensor): Tensor {
    return ops().indexSelect(this, dim, index)
  }
  gather(dim: number, index: Tensor): Tensor {
    return ops().gather(this, dim, index)
  }
  indexAdd(dim: number, index: Tensor, src: Tensor): Tensor {
    return ops().indexAdd(this, dim, index, src)
  }
  scatterAdd(dim: number, index: Tensor, src: Tensor): Tensor {
    return ops().scatterAdd(this, dim, index, src)
  }
  scatter(dim: number, index: Tensor, src: Tensor | number): Tensor {
    return ops().scatter(this, dim, index, src)
  }
  indexFill(dim: number, index: Tensor, value: Tensor | number): Tensor {
    return ops().indexFill(this, dim, index, value)
  }
  take(index: Tensor): Tensor {
    return ops().take(this, index)
  }
  takeAlongDim(index: Tensor, dim?: number): Tensor {
    return ops().takeAlongDim(this, index, dim)
  }
  maskedFill(mask: Tensor, value: Tensor | number): Tensor {
    return ops().maskedFill(this, mask, value)
  }
  maskedFill_(mask: Tensor, value: Tensor | number): this {
    ops().maskedFill_(this, mask, value)
    return this
  }
  maskedSelect(mask: Tensor): Tensor {
    return ops().maskedSelect(this, mask)
  }
  /** int32 [count, ndim]: where it is not 0. */
  nonzero(): Tensor {
    return ops().nonzero(this)
  }
  tril(diagonal?: number): Tensor {
    return ops().tril(this, diagonal)
  }
  triu(diagonal?: number): Tensor {
    return ops().triu(this, diagonal)
  }
  tensorSplit(parts: number | readonly number[], dim?: number): Tensor[] {
    return ops().tensorSplit(this, parts, dim)
  }
  unflatten(dim: number, sizes: readonly number[]): Tensor {
    return ops().unflatten(this, dim, sizes)
  }
  ravel(): Tensor {
    return ops().ravel(this)
  }
  movedim(source: DimsArg, destination: DimsArg): Tensor {
    return ops().movedim(this, source, destination)
  }
  swapaxes(dim0: number, dim1: number): Tensor {
    return ops().swapaxes(this, dim0, dim1)
  }
  /** The last two dimensions exchanged. */
  get mT(): Tensor {
    return ops().transpose(this, -2, -1)
  }
  broadcastTo(shape: readonly number[]): Tensor {
    return ops().broadcastTo(this, shape)
  }
  viewAs(other: Tensor): Tensor {
    return ops().viewAs(this, other)
  }
  expandAs(other: Tensor): Tensor {
    return ops().expandAs(this, other)
  }
  diag(diagonal?: number): Tensor {
    return ops().diag(this, diagonal)
  }
  diagEmbed(offset?: number, dim1?: number, dim2?: number): Tensor {
    return ops().diagEmbed(this, offset, dim1, dim2)
  }
  repeat(repeats: readonly number[]): Tensor {
    return ops().repeat(this, repeats)
  }
  tile(repeats: readonly number[]): Tensor {
    return ops().tile(this, repeats)
  }
  repeatInterleave(repeats: number | Tensor, dim?: number): Tensor {
    return ops().repeatInterleave(this, repeats, dim)
  }
  roll(shifts: DimsArg, dims?: DimsArg): Tensor {
    return ops().roll(this, shifts, dims)
  }
  flip(dims: DimsArg): Tensor {
    return ops().flip(this, dims)
  }
  softmax(dim: number): Tensor {
    return ops().softmax(this, dim)
  }
  logSoftmax(dim: number): Tensor {
    return ops().logSoftmax(this, dim)
  }
  nllLoss(target: Tensor, options?: LossArg<NllLossOptions<Tensor>>): Tensor {
    return ops().nllLoss(this, target, options)
  }
  crossEntropy(target: Tensor, options?: LossArg<CrossEntropyOptions<Tensor>>): Tensor {
    return ops().crossEntropy(this, target, options)
  }
  embedding(indices: Tensor): Tensor {
    return ops().embedding(this, indices)
  }
  add_(other: Tensor | number, alpha?: number): this {
    ops().add_(this, other, alpha)
    return this
  }
  sub_(other: Tensor | number, alpha?: number): this {
    ops().sub_(this, other, alpha)
    return this
  }
  mul_(other: Tensor | number): this {
    ops().mul_(this, other)
    return this
  }
  div_(other: Tensor | number): this {
    ops().div_(this, other)
    return this
  }
  copy_(src: Tensor): this {
    ops().copy_(this, src)
    return this
  }
  fill_(value: number): this {
    ops().fill_(this, value)
    return this
  }
  zero_(): this {
    ops().zero_(this)
    return this
  }
  neg_(): this {
    ops().neg_(this)
    return this
  }
  exp_(): this {
    ops().exp_(this)
    return this
  }
  log_(): this {
    ops().log_(this)
    return this
  }
  sqrt_(): this {
    ops().sqrt_(this)
    return this
  }
  sin_(): this {
    ops().sin_(this)
    return this
  }
  cos_(): this {
    ops().cos_(this)
    return this
  }
  tanh_(): this {
    ops().tanh_(this)
    return this
  }
  sigmoid_(): this {
    ops().sigmoid_(this)
    return this
  }
  relu_(): this {
    ops().relu_(this)
    return this
  }
  abs_(): this {
    ops().abs_(this)
    return this
  }
  sign_(): this {
    ops().sign_(this)
    return this
  }
  pow_(exponent: Tensor | number): this {
    ops().pow_(this, exponent)
    return this
  }
  clamp_(min?: number | null, max?: number | null): this {
    ops().clamp_(this, min, max)
    return this
  }
  floor_(): this {
    ops().floor_(this)
    return this
  }
  ceil_(): this {
    ops().ceil_(this)
    return this
  }
  round_(): this {
    ops().round_(this)
    return this
  }
  trunc_(): this {
    ops().trunc_(this)
    return this
  }
  reciprocal_(): this {
    ops().reciprocal_(this)
    return this
  }
  rsqrt_(): this {
    ops().rsqrt_(this)
    return this
  }
  square_(): this {
    ops().square_(this)
    return this
  }
  log1p_(): this {
    ops().log1p_(this)
    return this
  }
  expm1_(): this {
    ops().expm1_(this)
    return this
  }
  log2_(): this {
    ops().log2_(this)
    return this
  }
  log10_(): this {
    ops().log10_(this)
    return this
  }
  exp2_(): this {
    ops().exp2_(this)
    return this
  }
  tan_(): this {
    ops().tan_(this)
    return this
  }
  sinh_(): this {
    ops().sinh_(this)
    return this
  }
  cosh_(): this {
    ops().cosh_(this)
    return this
  }
  asin_(): this {
    ops().asin_(this)
    return this
  }
  acos_(): this {
    ops().acos_(this)
    return this
  }
  atan_(): this {
    ops().atan_(this)
    return this
  }
  erf_(): this {
    ops().erf_(this)
    return this
  }
  leakyRelu_(negativeSlope?: number): this {
    ops().leakyRelu_(this, negativeSlope)
    return this
  }
  elu_(alpha?: number): this {
    ops().elu_(this, alpha)
    return this
  }
  hardtanh_(min?: number, max?: number): this {
    ops().hardtanh_(this, min, max)
    return this
  }
  nanToNum_(options?: NanToNumOptions): this {
    ops().nanToNum_(this, options)
    return this
  }
  remainder_(other: Tensor | number): this {
    ops().remainder_(this, other)
    return this
  }
  fmod_(other: Tensor | number): this {
    ops().fmod_(this, other)
    return this
  }
  floorDivide_(other: Tensor | number): this {
    ops().floorDivide_(this, other)
    return this
  }
  atan2_(other: Tensor): this {
    ops().atan2_(this, other)
    return this
  }
  lerp_(end: Tensor, weight: Tensor | number): this {
    ops().lerp_(this, end, weight)
    return this
  }
  addcmul_(a: Tensor, b: Tensor, options?: ValueOptions): this {
    ops().addcmul_(this, a, b, options)
    return this
  }
  addcdiv_(a: Tensor, b: Tensor, options?: ValueOptions): this {
    ops().addcdiv_(this, a, b, options)
    return this
  }
  cumsum_(dim: number): this {
    ops().cumsum_(this, dim)
    return this
  }
  cumprod_(dim: number): this {
    ops().cumprod_(this, dim)
    return this
  }
  tril_(diagonal?: number): this {
    ops().tril_(this, diagonal)
    return this
  }
  triu_(diagonal?: number): this {
    ops().triu_(this, diagonal)
    return this
  }
  scatterAdd_(dim: number, index: Tensor, src: Tensor): this {
    ops().scatterAdd_(this, dim, index, src)
    return this
  }
  indexAdd_(dim: number, index: Tensor, src: Tensor): this {
    ops().indexAdd_(this, dim, index, src)
    return this
  }
  scatter_(dim: number, index: Tensor, src: Tensor | number): this {
    ops().scatter_(this, dim, index, src)
    return this
  }
  indexFill_(dim: number, index: Tensor, value: Tensor | number): this {
    ops().indexFill_(this, dim, index, value)
    return this
  }
}

/** True for a tensor of any copy of this package (`instanceof` fails across jest's realms). */
export function isTensor(value: unknown): value is Tensor {
  return typeof value === 'object' && value !== null && 'storage' in value && 'strides' in value && 'autograd' in value
}

/** The installed handler. @throws OPS_NOT_LOADED when this file was imported without the package's doors */
function ops(): OpHandler {
  if (handler !== null) return handler
  throw new PostgradError('OPS_NOT_LOADED', {
    op: 'Tensor',
    message: 'no operations are loaded in this thread',
    remedy: "Import from '@postgrad/tensor' or 'postgrad'.",
  })
}
