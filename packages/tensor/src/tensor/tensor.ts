/**
 * Tensor: a view (shape, strides, offset) on a storage, with a slot for autograd. It computes nothing itself: methods go through one
 * handler (raw operations until autograd puts its own in place), so this file stands below all operations.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { CPU, type Memory } from '../heap/memory.js'
import { nameOperations, Storage } from '../heap/storage.js'
import type { DimsArg, GeluOptions, NanToNumOptions, Ops, SoftplusOptions } from '../ops/ops.js'
import type { DivOptions, IsCloseOptions, ValueOptions } from '../ops/ops-arithmetic.js'
import type { BackwardPassOptions, GradFunction, GradOps, RemovableHandle } from '../ops/ops-grad.js'
import type { AddmmOptions, IndexSpec } from '../ops/ops-indexing.js'
import type { CrossEntropyOptions, LossArg, NllLossOptions } from '../ops/ops-neural.js'
import type { ReduceOptions, SortOptions, TopkOptions, ValuesAndIndices, VarianceOptions } from '../ops/ops-reduce.js'
import { allocate, BYTES_PER_ELEMENT, type DType, type TypedArray, viewOn } from '../values/dtype.js'
import { shapeText } from '../values/errors.js'
import { formatTensor } from '../values/format.js'
import { type JsonNumber, type TensorJson, toJson } from '../values/json.js'
import { type NestedArray, nest, snapshot } from '../values/read.js'
import { contiguousStrides, isContiguous, numelOf, type Shape, sameShape } from '../values/shape.js'
import { type Device, type DeviceSpec, deviceOf } from './device.js'

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

/** @returns the one before */
export function installOpHandler(next: OpHandler): OpHandler | null {
  const before = handler
  handler = next
  return before
}

/**
 * An array of numbers of one dtype in any number of dimensions, with its place in the graph of gradients. Operations are methods and functions of
 * the same name; `tensor`, `zeros`, `randn` and others make one. PyTorch: `torch.Tensor`.
 */
export class Tensor {
  // `declare`: plain assignments in the constructor, without a definition to undefined first; a tensor is made on every operation.
  /** The memory that it shares with its views. @internal */
  declare readonly storage: Storage
  /** Its extents, from the outermost on; [] for a scalar. */
  declare readonly shape: Shape
  /** In elements. */
  declare readonly strides: Shape
  /** In elements, into the storage. */
  declare readonly offset: number
  /** 'float32', 'float64', 'int32' or 'bool'. */
  declare readonly dtype: DType
  /** How many elements it has. */
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
  static empty(dtype: DType, shape: Shape, memory: Memory): Tensor {
    const numel = numelOf(shape)
    return new Tensor(Storage.allocate(dtype, numel, memory), shape, contiguousStrides(shape), 0, numel, true)
  }

  /** @internal A contiguous tensor whose elements are whatever lay there: for outputs that a kernel writes whole. */
  static uninitialized(dtype: DType, shape: Shape, memory: Memory): Tensor {
    const numel = numelOf(shape)
    return new Tensor(Storage.uninitialized(dtype, numel, memory), shape, contiguousStrides(shape), 0, numel, true)
  }

  /** @internal A contiguous tensor of these elements: over `array` itself, which it takes over, or a copy in another memory. array.length is the number of elements. */
  static over(dtype: DType, shape: Shape, array: TypedArray, memory = CPU): Tensor {
    if (memory !== CPU) {
      const out = Tensor.uninitialized(dtype, shape, memory)
      memory.buffers!.write(out.storage.device!.buffer, new Uint8Array(array.buffer, array.byteOffset, array.byteLength))
      return out
    }
    return new Tensor(new Storage(dtype, array), shape, contiguousStrides(shape), 0, numelOf(shape), true)
  }

  /** @internal A view on the storage of `base`. */
  static view(base: Tensor, shape: Shape, strides: Shape, offset: number): Tensor {
    return new Tensor(base.storage, shape, strides, offset, numelOf(shape), isContiguous(shape, strides))
  }

  /** How many dimensions it has. */
  get ndim(): number {
    return this.shape.length
  }

  /** Where it lies: `device('cpu')` for each tensor of this process, whatever backend made it. PyTorch: `Tensor.device`. */
  get device(): Device {
    return deviceOf(this.storage.memory)
  }

  /** Whether only some rows are stored: such a tensor is a `SparseTensor`. */
  get isSparse(): boolean {
    return false
  }

  /** Whether gradients flow to it: a leaf that wants one, or what was computed from such. */
  get requiresGrad(): boolean {
    return this.autograd?.requiresGrad === true
  }

  /** Whether no recorded operation made it; only leaves get `.grad`, unless `retainGrad()` is called. */
  get isLeaf(): boolean {
    return this.autograd === null || this.autograd.gradFn === null
  }

  /** The gradient that backward passes have added up here; null before the first. Distributed passes leave theirs in the context. */
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

  /**
   * The node of the operation that made this tensor while recording; null for a leaf.
   * @throws INPLACE_ON_VIEW for a view that a custom function returned or that was made under noGrad, after a recorded write into its base
   */
  get gradFn(): GradFunction<Tensor> | null {
    return this.autograd === null ? null : (this.autograd.gradFn as GradFunction<Tensor> | null)
  }

  /** Whether `retainGrad()` was called on this non-leaf. */
  get retainsGrad(): boolean {
    return ops().retainsGrad(this)
  }

  /** Makes this leaf want a gradient, or not, and returns it. @throws REQUIRES_GRAD_NEEDS_FLOAT for int32 and bool */
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
   * gradient's place. A hook may also write into the gradient (`g.clamp_(-1, 1)`). After an in-place operation it stays with the value that it was registered for.
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

  /** Whether its memory was given back by `close()`. */
  get isClosed(): boolean {
    return this.storage.isClosed
  }

  /** A snapshot in row-major order, once the device has written it. bool gives 0 and 1. */
  async data(): Promise<TypedArray> {
    const { storage, offset, numel } = this
    const { buffers } = storage.memory
    // Of a tensor that is closed or sparse, `host` cannot be had, wherever it is.
    const { host } = storage
    if (buffers === null || numel === 0) return this.snapshot('data', host ?? allocate(this.dtype, 0), offset)
    // What lies between its first element and its last one.
    const size = BYTES_PER_ELEMENT[this.dtype]
    const span = 1 + this.shape.reduce((sum, extent, d) => sum + (extent - 1) * this.strides[d]!, 0)
    const bytes = await buffers.read(storage.device!.buffer, offset * size, span * size)
    return this.snapshot('data', viewOn(this.dtype, bytes.buffer, bytes.byteOffset, span), 0)
  }

  /** The only element. @throws NOT_A_SCALAR */
  async item(): Promise<number> {
    this.checkSingle('item')
    return (await this.data())[0]!
  }

  /** As `data()`, now. @throws READ_NOT_SYNCHRONOUS on a device that computes asynchronously */
  dataSync(): TypedArray {
    return this.snapshot('dataSync')
  }

  /** The only element, now. @throws NOT_A_SCALAR, READ_NOT_SYNCHRONOUS */
  itemSync(): number {
    this.checkSingle('itemSync')
    return this.hostElements('itemSync', 'item()')[this.offset]!
  }

  /** Arrays within arrays, booleans for bool; a 0-d tensor gives its element. @throws READ_NOT_SYNCHRONOUS */
  toArray(): NestedArray {
    return nest<number | boolean>(this.snapshot('toArray'), this.shape, this.dtype === 'bool' ? (value) => value !== 0 : (value) => value)
  }

  /**
   * What `JSON.stringify` writes: dtype, shape and data; `tensor(JSON.parse(text))` makes the same tensor of it, without a history.
   *
   * `JSON.stringify` passes a key. Test frameworks that print what differs pass none, and must not fail then: without a key, `data` of a tensor that
   * cannot be read is the code of the error, which `tensor()` refuses.
   * @throws READ_NOT_SYNCHRONOUS, TENSOR_CLOSED, when a key is passed
   */
  toJSON(key?: string): TensorJson {
    try {
      return toJson(this.snapshot('toJSON'), this.shape, this.dtype)
    } catch (error) {
      if (key !== undefined || !isPostgradError(error)) throw error
      return { dtype: this.dtype, shape: [...this.shape], data: error.code as JsonNumber }
    }
  }

  /** As PyTorch prints it; without the elements on a device that computes asynchronously, and once it is closed. */
  toString(): string {
    if (this.isClosed) return `tensor(closed, shape=${shapeText(this.shape)}, dtype=${this.dtype})`
    if (this.storage.memory !== CPU) return `tensor(shape=${shapeText(this.shape)}, dtype=${this.dtype}, device=${this.device})`
    return formatTensor(this.snapshot('toString'), this.shape, this.dtype, this.historyText())
  }

  /** A view whose history is not known any more shows the code of the error that reading the history throws: to print a tensor never throws. */
  private historyText(): string[] {
    try {
      const gradFn = this.gradFn as { name?: unknown } | null
      return gradFn !== null ? [`gradFn=<${String(gradFn.name)}>`] : this.requiresGrad ? ['requiresGrad=true'] : []
    } catch (error) {
      if (!isPostgradError(error)) throw error
      return [`gradFn=<${error.code}>`]
    }
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }

  /**
   * @internal What operators of the language ask for: `a + b` would be a text and `a * b` NaN, in silence.
   * @throws INVALID_ARGUMENT unless a text is wanted, as in `${a}`
   */
  [Symbol.toPrimitive](hint: string): string {
    if (hint === 'string') return this.toString()
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'Tensor',
      message: `a tensor of shape ${shapeText(this.shape)} is no number: JavaScript's operators (+, -, *, /, <, ==) and functions of numbers do not compute with tensors`,
      remedy:
        'Write a.add(b), a.sub(b), a.mul(b), a.div(b), a.lt(b), a.eq(b). Where one number is wanted, write await a.item(); for a text, String(a).',
    })
  }

  private snapshot(op: string, elements = this.hostElements(op, 'data()'), offset = this.offset): TypedArray {
    return snapshot(elements, this.shape, this.strides, offset, this.numel, this.isContiguous)
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

  /** Those of its storage. @throws READ_NOT_SYNCHRONOUS */
  private hostElements(op: string, instead: string): TypedArray {
    const { host } = this.storage
    if (host !== null) return host
    throw new PostgradError('READ_NOT_SYNCHRONOUS', {
      op,
      expected: 'a tensor of the cpu, which can be read at once',
      got: `one of device '${this.device}'`,
      remedy: `Use await ${instead}.`,
      values: { device: this.device.spec },
    })
  }

  // Operations, as functions of the same name (see ops.ts).

  /** −x of each element. PyTorch: `torch.neg`. @throws DTYPE_MISMATCH for bool */
  neg(): Tensor {
    return ops().neg(this)
  }
  /** eˣ of each element. int32 and bool become float32. PyTorch: `torch.exp`. */
  exp(): Tensor {
    return ops().exp(this)
  }
  /** The natural logarithm of each element. int32 and bool become float32. PyTorch: `torch.log`. */
  log(): Tensor {
    return ops().log(this)
  }
  /** The square root of each element, NaN of negative ones. int32 and bool become float32. PyTorch: `torch.sqrt`. */
  sqrt(): Tensor {
    return ops().sqrt(this)
  }
  /** The sine of each element, in radians. int32 and bool become float32. PyTorch: `torch.sin`. */
  sin(): Tensor {
    return ops().sin(this)
  }
  /** The cosine of each element, in radians. int32 and bool become float32. PyTorch: `torch.cos`. */
  cos(): Tensor {
    return ops().cos(this)
  }
  /** The hyperbolic tangent of each element. int32 and bool become float32. PyTorch: `torch.tanh`. */
  tanh(): Tensor {
    return ops().tanh(this)
  }
  /** 1 / (1 + e⁻ˣ) of each element. int32 and bool become float32. PyTorch: `torch.sigmoid`. */
  sigmoid(): Tensor {
    return ops().sigmoid(this)
  }
  /** x where positive, else 0; int32 stays. PyTorch: `torch.nn.functional.relu`. @throws DTYPE_MISMATCH for bool */
  relu(): Tensor {
    return ops().relu(this)
  }
  /** The absolute value of each element; int32 stays, bool is refused. PyTorch: `torch.abs`. @throws DTYPE_MISMATCH */
  abs(): Tensor {
    return ops().abs(this)
  }
  /** −1, 0 or 1 for each element; int32 and bool stay. PyTorch: `torch.sign`. */
  sign(): Tensor {
    return ops().sign(this)
  }
  /** The next integer below each element; int32 stays. PyTorch: `torch.floor`. @throws DTYPE_MISMATCH for bool */
  floor(): Tensor {
    return ops().floor(this)
  }
  /** The next integer above each element; int32 stays. PyTorch: `torch.ceil`. @throws DTYPE_MISMATCH for bool */
  ceil(): Tensor {
    return ops().ceil(this)
  }
  /** The nearest integer of each element, halves to the even one; int32 stays. PyTorch: `torch.round`. @throws DTYPE_MISMATCH for bool */
  round(): Tensor {
    return ops().round(this)
  }
  /** Each element without its fraction; int32 stays. PyTorch: `torch.trunc`. @throws DTYPE_MISMATCH for bool */
  trunc(): Tensor {
    return ops().trunc(this)
  }
  /** 1 / x of each element. int32 and bool become float32. PyTorch: `torch.reciprocal`. */
  reciprocal(): Tensor {
    return ops().reciprocal(this)
  }
  /** 1 / √x of each element. int32 and bool become float32. PyTorch: `torch.rsqrt`. */
  rsqrt(): Tensor {
    return ops().rsqrt(this)
  }
  /** x² of each element; int32 stays, bool becomes int32. PyTorch: `torch.square`. */
  square(): Tensor {
    return ops().square(this)
  }
  /** log(1 + x) of each element, exact near 0. int32 and bool become float32. PyTorch: `torch.log1p`. */
  log1p(): Tensor {
    return ops().log1p(this)
  }
  /** eˣ − 1 of each element, exact near 0. int32 and bool become float32. PyTorch: `torch.expm1`. */
  expm1(): Tensor {
    return ops().expm1(this)
  }
  /** The logarithm to base 2 of each element. int32 and bool become float32. PyTorch: `torch.log2`. */
  log2(): Tensor {
    return ops().log2(this)
  }
  /** The logarithm to base 10 of each element. int32 and bool become float32. PyTorch: `torch.log10`. */
  log10(): Tensor {
    return ops().log10(this)
  }
  /** 2ˣ of each element. int32 and bool become float32. PyTorch: `torch.exp2`. */
  exp2(): Tensor {
    return ops().exp2(this)
  }
  /** The tangent of each element, in radians. int32 and bool become float32. PyTorch: `torch.tan`. */
  tan(): Tensor {
    return ops().tan(this)
  }
  /** The hyperbolic sine of each element. int32 and bool become float32. PyTorch: `torch.sinh`. */
  sinh(): Tensor {
    return ops().sinh(this)
  }
  /** The hyperbolic cosine of each element. int32 and bool become float32. PyTorch: `torch.cosh`. */
  cosh(): Tensor {
    return ops().cosh(this)
  }
  /** The arc sine of each element, in radians; NaN outside of [−1, 1]. int32 and bool become float32. PyTorch: `torch.asin`. */
  asin(): Tensor {
    return ops().asin(this)
  }
  /** The arc cosine of each element, in radians; NaN outside of [−1, 1]. int32 and bool become float32. PyTorch: `torch.acos`. */
  acos(): Tensor {
    return ops().acos(this)
  }
  /** The arc tangent of each element, in radians. int32 and bool become float32. PyTorch: `torch.atan`. */
  atan(): Tensor {
    return ops().atan(this)
  }
  /** The error function of each element. int32 and bool become float32. PyTorch: `torch.erf`. */
  erf(): Tensor {
    return ops().erf(this)
  }
  /** x where positive, else x · negativeSlope (default 0.01). PyTorch: `torch.nn.functional.leaky_relu`. */
  leakyRelu(negativeSlope?: number): Tensor {
    return ops().leakyRelu(this, negativeSlope)
  }
  /** x Φ(x), or its approximation by tanh with `approximate: 'tanh'`. PyTorch: `torch.nn.functional.gelu`. @throws DTYPE_MISMATCH */
  gelu(options?: GeluOptions): Tensor {
    return ops().gelu(this, options)
  }
  /** x σ(x). PyTorch: `torch.nn.functional.silu`. @throws DTYPE_MISMATCH */
  silu(): Tensor {
    return ops().silu(this)
  }
  /**
   * log(1 + exp(beta x)) / beta, with beta 1 by default; x itself where beta x is above `threshold` (20). PyTorch: `torch.nn.functional.softplus`.
   * @throws DTYPE_MISMATCH
   */
  softplus(options?: SoftplusOptions): Tensor {
    return ops().softplus(this, options)
  }
  /** x where positive, else alpha (eˣ − 1); alpha is 1 by default. PyTorch: `torch.nn.functional.elu`. @throws DTYPE_MISMATCH */
  elu(alpha?: number): Tensor {
    return ops().elu(this, alpha)
  }
  /** Each element kept within its bounds (default −1 and 1); the gradient at a bound is 0, where clamp's is 1. PyTorch: `torch.nn.functional.hardtanh`. */
  hardtanh(min?: number, max?: number): Tensor {
    return ops().hardtanh(this, min, max)
  }
  /** Each element kept within 0 and 6. PyTorch: `torch.nn.functional.relu6`. */
  relu6(): Tensor {
    return ops().relu6(this)
  }
  /** log σ(x), without overflow. PyTorch: `torch.nn.functional.logsigmoid`. @throws DTYPE_MISMATCH */
  logSigmoid(): Tensor {
    return ops().logSigmoid(this)
  }
  /** x tanh(softplus x). PyTorch: `torch.nn.functional.mish`. @throws DTYPE_MISMATCH */
  mish(): Tensor {
    return ops().mish(this)
  }
  /** x / (1 + |x|). PyTorch: `torch.nn.functional.softsign`. */
  softsign(): Tensor {
    return ops().softsign(this)
  }
  /** x − tanh x. PyTorch: `torch.nn.functional.tanhshrink`. */
  tanhshrink(): Tensor {
    return ops().tanhshrink(this)
  }
  /** Whether each element is NaN, as bool. PyTorch: `torch.isnan`. */
  isNaN(): Tensor {
    return ops().isNaN(this)
  }
  /** Whether each element is ∞ or −∞, as bool. PyTorch: `torch.isinf`. */
  isInf(): Tensor {
    return ops().isInf(this)
  }
  /** Whether each element is neither NaN nor infinite, as bool. PyTorch: `torch.isfinite`. */
  isFinite(): Tensor {
    return ops().isFinite(this)
  }
  /** NaN replaced by 0, ±∞ by the largest finite numbers of the dtype, or by what `options` say. PyTorch: `torch.nan_to_num`. */
  nanToNum(options?: NanToNumOptions): Tensor {
    return ops().nanToNum(this, options)
  }
  /** Whether each element is 0, as bool. PyTorch: `torch.logical_not`. */
  logicalNot(): Tensor {
    return ops().logicalNot(this)
  }
  /** Whether both are not 0, element by element, as bool. Shapes broadcast. PyTorch: `torch.logical_and`. @throws SHAPE_MISMATCH */
  logicalAnd(other: Tensor): Tensor {
    return ops().logicalAnd(this, other)
  }
  /** Whether one of both is not 0, element by element, as bool. Shapes broadcast. PyTorch: `torch.logical_or`. @throws SHAPE_MISMATCH */
  logicalOr(other: Tensor): Tensor {
    return ops().logicalOr(this, other)
  }
  /** Whether exactly one of both is not 0, element by element, as bool. Shapes broadcast. PyTorch: `torch.logical_xor`. @throws SHAPE_MISMATCH */
  logicalXor(other: Tensor): Tensor {
    return ops().logicalXor(this, other)
  }
  /** A contiguous copy with a gradient of its own way back. PyTorch: `torch.clone`. */
  clone(): Tensor {
    return ops().clone(this)
  }
  /** The tensor itself where its elements lie in row-major order, else a copy in which they do. PyTorch: `Tensor.contiguous`. */
  contiguous(): Tensor {
    return ops().contiguous(this)
  }
  /**
   * The tensor itself where it has that dtype and lies on that device, else a copy; to int32 truncates. From a device back to this process: `await x.cpu()`.
   * PyTorch: `Tensor.to(dtype)`, `.to(device, dtype)`, `.to(other)`.
   * @throws DTYPE_MISMATCH, DEVICE_UNKNOWN, READ_NOT_SYNCHRONOUS from a device that computes asynchronously
   */
  to(target: DType | Device | DeviceSpec | Tensor, dtype?: DType): Tensor {
    return ops().to(this, target, dtype)
  }
  /** The tensor itself where it lies in this process, else a copy here, when its device has computed it. PyTorch: `Tensor.cpu`. */
  async cpu(): Promise<Tensor> {
    if (this.storage.memory === CPU) return this
    // A tensor of its own: what is written to this one meanwhile changes neither the values nor the history of the copy.
    const read = this.requiresGrad ? ops().clone(this) : this
    return ops().arrived(read, Tensor.over(this.dtype, this.shape, await read.data()))
  }
  /**
   * aᵇ, element by element; shapes broadcast, one of the two may be a number. int32 wraps around. PyTorch: `torch.pow`. @throws SHAPE_MISMATCH,
   * INVALID_ARGUMENT for a negative exponent of integers
   */
  pow(exponent: Tensor | number): Tensor {
    return ops().pow(this, exponent)
  }
  /**
   * Each element kept within [min, max]; null or undefined is no bound, one is needed. The gradient at a bound is 1. PyTorch: `torch.clamp`.
   * @throws INVALID_ARGUMENT
   */
  clamp(min?: number | null, max?: number | null): Tensor {
    return ops().clamp(this, min, max)
  }
  /** The sum of each two elements. Shapes broadcast, dtypes promote, one of the two may be a number. PyTorch: `torch.add`. @throws SHAPE_MISMATCH */
  add(other: Tensor | number): Tensor {
    return ops().add(this, other)
  }
  /**
   * The difference of each two elements. Shapes broadcast, dtypes promote, one of the two may be a number. PyTorch: `torch.sub`. @throws
   * SHAPE_MISMATCH, DTYPE_MISMATCH for bool
   */
  sub(other: Tensor | number): Tensor {
    return ops().sub(this, other)
  }
  /** The product of each two elements. Shapes broadcast, dtypes promote, one of the two may be a number. PyTorch: `torch.mul`. @throws SHAPE_MISMATCH */
  mul(other: Tensor | number): Tensor {
    return ops().mul(this, other)
  }
  /**
   * The quotient of each two elements: of integers too it is float32, unless `roundingMode` is 'floor' or 'trunc'. Shapes broadcast, one of the two
   * may be a number. PyTorch: `torch.div`. @throws SHAPE_MISMATCH
   */
  div(other: Tensor | number, options?: DivOptions): Tensor {
    return ops().div(this, other, options)
  }
  /**
   * The quotient of each two elements, rounded towards −∞; integers stay integers, and by 0 give 0 (PyTorch throws). Shapes broadcast. PyTorch:
   * `torch.floor_divide`. @throws SHAPE_MISMATCH
   */
  floorDivide(other: Tensor | number): Tensor {
    return ops().floorDivide(this, other)
  }
  /**
   * The remainder of a / b with the sign of b; of integers by 0 it is 0 (PyTorch throws). Shapes broadcast. PyTorch: `torch.remainder`. @throws
   * SHAPE_MISMATCH
   */
  remainder(other: Tensor | number): Tensor {
    return ops().remainder(this, other)
  }
  /** The remainder of a / b with the sign of a; of integers by 0 it is 0 (PyTorch throws). Shapes broadcast. PyTorch: `torch.fmod`. @throws SHAPE_MISMATCH */
  fmod(other: Tensor | number): Tensor {
    return ops().fmod(this, other)
  }
  /** The bits that both have, element by element; int32 and bool alone. No gradient. PyTorch: `torch.bitwise_and`. @throws DTYPE_MISMATCH, SHAPE_MISMATCH */
  bitwiseAnd(other: Tensor | number): Tensor {
    return ops().bitwiseAnd(this, other)
  }
  /**
   * The bits that one of the two has, element by element; int32 and bool alone. No gradient. PyTorch: `torch.bitwise_or`. @throws DTYPE_MISMATCH,
   * SHAPE_MISMATCH
   */
  bitwiseOr(other: Tensor | number): Tensor {
    return ops().bitwiseOr(this, other)
  }
  /**
   * The bits that exactly one of the two has, element by element; int32 and bool alone. No gradient. PyTorch: `torch.bitwise_xor`. @throws
   * DTYPE_MISMATCH, SHAPE_MISMATCH
   */
  bitwiseXor(other: Tensor | number): Tensor {
    return ops().bitwiseXor(this, other)
  }
  /**
   * The angle of the point (b, a), from −π to π, element by element; the signs of both decide. Shapes broadcast, integers become float32. PyTorch:
   * `torch.atan2`. @throws SHAPE_MISMATCH
   */
  atan2(other: Tensor): Tensor {
    return ops().atan2(this, other)
  }
  /** All bits the other way round; of bool: not. int32 and bool alone. PyTorch: `torch.bitwise_not`. @throws DTYPE_MISMATCH */
  bitwiseNot(): Tensor {
    return ops().bitwiseNot(this)
  }
  /** a + weight (b − a); the three broadcast, weight may be a number. PyTorch: `torch.lerp`. @throws SHAPE_MISMATCH */
  lerp(end: Tensor, weight: Tensor | number): Tensor {
    return ops().lerp(this, end, weight)
  }
  /** x + value · a · b, with value 1 by default; the three broadcast. PyTorch: `torch.addcmul`. @throws SHAPE_MISMATCH */
  addcmul(a: Tensor, b: Tensor, options?: ValueOptions): Tensor {
    return ops().addcmul(this, a, b, options)
  }
  /** x + value · a / b, with value 1 by default; the three broadcast. PyTorch: `torch.addcdiv`. @throws SHAPE_MISMATCH */
  addcdiv(a: Tensor, b: Tensor, options?: ValueOptions): Tensor {
    return ops().addcdiv(this, a, b, options)
  }
  /** Whether |a − b| ≤ atol + rtol |b|, element by element, as bool; rtol 1e-5, atol 1e-8. PyTorch: `torch.isclose`. @throws SHAPE_MISMATCH */
  isclose(other: Tensor, options?: IsCloseOptions): Tensor {
    return ops().isclose(this, other, options)
  }
  /**
   * Whether |a − b| ≤ atol + rtol |b| everywhere; rtol 1e-5, atol 1e-8, NaN is close to nothing by default. Shapes broadcast. Reads at once, as
   * `itemSync` does. PyTorch: `torch.allclose`.
   */
  allclose(other: Tensor, options?: IsCloseOptions): boolean {
    return ops().allclose(this, other, options)
  }
  /** Whether shapes and all elements are equal (NaN is not). Reads at once, as `itemSync` does. PyTorch: `torch.equal`. */
  equal(other: Tensor): boolean {
    return ops().equal(this, other)
  }
  /** The larger of each two elements. Shapes broadcast, one of the two may be a number; NaN wins. PyTorch: `torch.maximum`. @throws SHAPE_MISMATCH */
  maximum(other: Tensor | number): Tensor {
    return ops().maximum(this, other)
  }
  /** The smaller of each two elements. Shapes broadcast, one of the two may be a number; NaN wins. PyTorch: `torch.minimum`. @throws SHAPE_MISMATCH */
  minimum(other: Tensor | number): Tensor {
    return ops().minimum(this, other)
  }
  /**
   * Whether each two elements are equal, as bool. Shapes broadcast, one of the two may be a number. NaN equals nothing. PyTorch: `torch.eq`.
   * @throws SHAPE_MISMATCH
   */
  eq(other: Tensor | number): Tensor {
    return ops().eq(this, other)
  }
  /**
   * Whether each two elements differ, as bool. Shapes broadcast, one of the two may be a number. NaN differs from itself. PyTorch: `torch.ne`.
   * @throws SHAPE_MISMATCH
   */
  ne(other: Tensor | number): Tensor {
    return ops().ne(this, other)
  }
  /** Whether a < b, element by element, as bool. Shapes broadcast, one of the two may be a number. PyTorch: `torch.lt`. @throws SHAPE_MISMATCH */
  lt(other: Tensor | number): Tensor {
    return ops().lt(this, other)
  }
  /** Whether a ≤ b, element by element, as bool. Shapes broadcast, one of the two may be a number. PyTorch: `torch.le`. @throws SHAPE_MISMATCH */
  le(other: Tensor | number): Tensor {
    return ops().le(this, other)
  }
  /** Whether a > b, element by element, as bool. Shapes broadcast, one of the two may be a number. PyTorch: `torch.gt`. @throws SHAPE_MISMATCH */
  gt(other: Tensor | number): Tensor {
    return ops().gt(this, other)
  }
  /** Whether a ≥ b, element by element, as bool. Shapes broadcast, one of the two may be a number. PyTorch: `torch.ge`. @throws SHAPE_MISMATCH */
  ge(other: Tensor | number): Tensor {
    return ops().ge(this, other)
  }
  /** This tensor (bool) chooses: a where it is true, b elsewhere. */
  where(a: Tensor | number, b: Tensor | number): Tensor {
    return ops().where(this, a, b)
  }
  /**
   * The sum of all elements or over `dims` (`keepdim`: default false); int32 and bool sum to int32 (PyTorch: int64). PyTorch: `torch.sum`. @throws
   * DIM_OUT_OF_RANGE
   */
  sum(dims?: DimsArg, keepdim?: boolean, options?: ReduceOptions): Tensor {
    return ops().sum(this, dims, keepdim, options)
  }
  /**
   * The mean of all elements or over `dims` (`keepdim`: default false); floating point only, convert by `{ dtype }`. PyTorch: `torch.mean`. @throws
   * DTYPE_MISMATCH, DIM_OUT_OF_RANGE
   */
  mean(dims?: DimsArg, keepdim?: boolean, options?: ReduceOptions): Tensor {
    return ops().mean(this, dims, keepdim, options)
  }
  /**
   * The largest element over all or over `dims` (`keepdim`: default false); NaN is the largest. The gradient is shared equally by equals. PyTorch:
   * `torch.amax`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
   */
  amax(dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().amax(this, dims, keepdim)
  }
  /**
   * int32: the index of the first of the largest elements, along `dim` or, left out, as if flattened. No gradient. PyTorch: `torch.argmax`. @throws
   * REDUCE_EMPTY, DIM_OUT_OF_RANGE
   */
  argmax(dim?: number, keepdim?: boolean): Tensor {
    return ops().argmax(this, dim, keepdim)
  }
  /**
   * The largest of all elements, whose gradient is shared by equals; or along `dim` { values, indices } with the first of the largest, which gets
   * the gradient. NaN is the largest. PyTorch: `torch.max`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
   */
  max(): Tensor
  /**
   * The largest of all elements, whose gradient is shared by equals; or along `dim` { values, indices } with the first of the largest, which gets
   * the gradient. NaN is the largest. PyTorch: `torch.max`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
   */
  max(dim: number, keepdim?: boolean): ValuesAndIndices<Tensor>
  /**
   * The largest of all elements, whose gradient is shared by equals; or along `dim` { values, indices } with the first of the largest, which gets
   * the gradient. NaN is the largest. PyTorch: `torch.max`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
   */
  max(dim?: number, keepdim?: boolean): Tensor | ValuesAndIndices<Tensor> {
    return dim === undefined ? ops().max(this) : ops().max(this, dim, keepdim)
  }
  /**
   * The smallest of all elements, whose gradient is shared by equals; or along `dim` { values, indices } with the first of the smallest, which gets
   * the gradient. PyTorch: `torch.min`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
   */
  min(): Tensor
  /**
   * The smallest of all elements, whose gradient is shared by equals; or along `dim` { values, indices } with the first of the smallest, which gets
   * the gradient. PyTorch: `torch.min`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
   */
  min(dim: number, keepdim?: boolean): ValuesAndIndices<Tensor>
  /**
   * The smallest of all elements, whose gradient is shared by equals; or along `dim` { values, indices } with the first of the smallest, which gets
   * the gradient. PyTorch: `torch.min`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
   */
  min(dim?: number, keepdim?: boolean): Tensor | ValuesAndIndices<Tensor> {
    return dim === undefined ? ops().min(this) : ops().min(this, dim, keepdim)
  }
  /**
   * int32: the indices that sort along `dim` (default −1, the last), ascending unless `descending`. Equals keep their order, NaN is the greatest.
   * PyTorch: `torch.argsort`. @throws DIM_OUT_OF_RANGE
   */
  argsort(dim?: number, options?: SortOptions): Tensor {
    return ops().argsort(this, dim, options)
  }
  /**
   * { values, indices } along `dim` (default the last), ascending unless `descending`. Equals keep their order, NaN is the greatest. PyTorch:
   * `torch.sort`. @throws DIM_OUT_OF_RANGE
   */
  sort(dim?: number, options?: SortOptions): ValuesAndIndices<Tensor> {
    return ops().sort(this, dim, options)
  }
  /**
   * { values, indices } of the k largest along `dim` (default the last), from the largest down; with `largest: false` the smallest. PyTorch:
   * `torch.topk`. @throws INVALID_ARGUMENT, DIM_OUT_OF_RANGE
   */
  topk(k: number, dim?: number, options?: TopkOptions): ValuesAndIndices<Tensor> {
    return ops().topk(this, k, dim, options)
  }
  /** The product of all elements or along `dim`; int32 and bool multiply to int32, nothing gives 1. PyTorch: `torch.prod`. @throws DIM_OUT_OF_RANGE */
  prod(dim?: number, keepdim?: boolean): Tensor {
    return ops().prod(this, dim, keepdim)
  }
  /**
   * The smallest element over all or over `dims` (`keepdim`: default false); NaN counts as the smallest. The gradient is shared equally by equals.
   * PyTorch: `torch.amin`. @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
   */
  amin(dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().amin(this, dims, keepdim)
  }
  /**
   * int32: the index of the first of the smallest elements, along `dim` or, left out, as if flattened. No gradient. PyTorch: `torch.argmin`.
   * @throws REDUCE_EMPTY, DIM_OUT_OF_RANGE
   */
  argmin(dim?: number, keepdim?: boolean): Tensor {
    return ops().argmin(this, dim, keepdim)
  }
  /** The variance over all or over `dims`; divides by n − correction (default 1). PyTorch: `torch.var`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE */
  var(dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions): Tensor {
    return ops().var(this, dims, keepdim, options)
  }
  /** The standard deviation over all or over `dims`; divides by n − correction (default 1). PyTorch: `torch.std`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE */
  std(dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions): Tensor {
    return ops().std(this, dims, keepdim, options)
  }
  /** log Σ eˣ over all or over `dims`, without overflow. PyTorch: `torch.logsumexp`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE */
  logSumExp(dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().logSumExp(this, dims, keepdim)
  }
  /**
   * (Σ |x|ᵖ)^(1/p) over all or over `dims`; p is 2 by default, ±Infinity gives the extreme |x|, 0 counts what is not 0. PyTorch: `torch.norm`.
   * @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE
   */
  norm(p?: number, dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().norm(this, p, dims, keepdim)
  }
  /** Element i is the sum of the elements 0 … i along `dim`; int32 and bool sum to int32. PyTorch: `torch.cumsum`. @throws DIM_OUT_OF_RANGE */
  cumsum(dim: number): Tensor {
    return ops().cumsum(this, dim)
  }
  /** Element i is the product of the elements 0 … i along `dim`; int32 and bool multiply to int32. PyTorch: `torch.cumprod`. @throws DIM_OUT_OF_RANGE */
  cumprod(dim: number): Tensor {
    return ops().cumprod(this, dim)
  }
  /**
   * Whether one element is not 0, as bool: over all, or over `dims` (`keepdim`: default false). NaN is not 0. Over nothing: false. PyTorch:
   * `torch.any`. @throws DIM_OUT_OF_RANGE
   */
  any(dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().any(this, dims, keepdim)
  }
  /**
   * Whether no element is 0, as bool: over all, or over `dims` (`keepdim`: default false). Over nothing: true. PyTorch: `torch.all`. @throws
   * DIM_OUT_OF_RANGE
   */
  all(dims?: DimsArg, keepdim?: boolean): Tensor {
    return ops().all(this, dims, keepdim)
  }
  /** int32: how many elements are not 0, of all or over `dims`. No gradient. PyTorch: `torch.count_nonzero`. @throws DIM_OUT_OF_RANGE */
  countNonzero(dims?: DimsArg): Tensor {
    return ops().countNonzero(this, dims)
  }
  /** [variance, mean] */
  varMean(dims?: DimsArg, keepdim?: boolean, options?: VarianceOptions): [Tensor, Tensor] {
    return ops().varMean(this, dims, keepdim, options)
  }
  /**
   * Matrix product: [k]·[k] → [], [m, k]·[k] → [m], [m, k]·[k, n] → [m, n], with leading batch dimensions that broadcast. Both have one dtype.
   * PyTorch: `torch.matmul`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH
   */
  matmul(other: Tensor): Tensor {
    return ops().matmul(this, other)
  }
  /**
   * Matrix products of a batch: [b, m, k] · [b, k, n] → [b, m, n]. Nothing broadcasts: `matmul` does. PyTorch: `torch.bmm`. @throws SHAPE_MISMATCH,
   * DTYPE_MISMATCH
   */
  bmm(other: Tensor): Tensor {
    return ops().bmm(this, other)
  }
  /** The same storage in another shape, of which one extent may be −1. PyTorch: `Tensor.view`. @throws SHAPE_MISMATCH, VIEW_NOT_CONTIGUOUS */
  view(shape: readonly number[]): Tensor {
    return ops().view(this, shape)
  }
  /**
   * The same elements in another shape, of which one extent may be −1; a view where it can be, else a copy. PyTorch: `torch.reshape`. @throws
   * SHAPE_MISMATCH
   */
  reshape(shape: readonly number[]): Tensor {
    return ops().reshape(this, shape)
  }
  /** A view with two dimensions exchanged. PyTorch: `torch.transpose`. @throws DIM_OUT_OF_RANGE */
  transpose(dim0: number, dim1: number): Tensor {
    return ops().transpose(this, dim0, dim1)
  }
  /** A view with the dimensions in the order of `dims`, which names each once. PyTorch: `torch.permute`. @throws INVALID_ARGUMENT, DIM_OUT_OF_RANGE */
  permute(dims: readonly number[]): Tensor {
    return ops().permute(this, dims)
  }
  /** Σ ab of two vectors: [k], [k] → []. PyTorch: `torch.dot`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
  dot(other: Tensor): Tensor {
    return ops().dot(this, other)
  }
  /** All products of two vectors: [m], [n] → [m, n]. PyTorch: `torch.outer`. @throws SHAPE_MISMATCH */
  outer(other: Tensor): Tensor {
    return ops().outer(this, other)
  }
  /** A matrix times a vector: [m, k], [k] → [m]. PyTorch: `torch.mv`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
  mv(other: Tensor): Tensor {
    return ops().mv(this, other)
  }
  /** Product of two matrices: [m, k], [k, n] → [m, n]. PyTorch: `torch.mm`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH */
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
  /** The sum of a matrix's diagonal. PyTorch: `torch.trace`. @throws SHAPE_MISMATCH */
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
  /** A view in which extents of 1 are repeated to `shape`; −1 keeps an extent. PyTorch: `Tensor.expand`. @throws SHAPE_MISMATCH */
  expand(shape: readonly number[]): Tensor {
    return ops().expand(this, shape)
  }
  /** A view without dimensions of extent 1: all of them, or those named that have it. PyTorch: `torch.squeeze`. @throws DIM_OUT_OF_RANGE */
  squeeze(dims?: DimsArg): Tensor {
    return ops().squeeze(this, dims)
  }
  /** A view with a new dimension of extent 1 at `dim`. PyTorch: `torch.unsqueeze`. @throws DIM_OUT_OF_RANGE */
  unsqueeze(dim: number): Tensor {
    return ops().unsqueeze(this, dim)
  }
  /** A view of `length` elements along `dim` from `start` on. PyTorch: `torch.narrow`. @throws INDEX_OUT_OF_RANGE, DIM_OUT_OF_RANGE */
  narrow(dim: number, start: number, length: number): Tensor {
    return ops().narrow(this, dim, start, length)
  }
  /**
   * A view of one slice along `dim`, without that dimension; negative indices count from the end. PyTorch: `torch.select`. @throws
   * INDEX_OUT_OF_RANGE, DIM_OUT_OF_RANGE
   */
  select(dim: number, index: number): Tensor {
    return ops().select(this, dim, index)
  }
  /**
   * Dimensions startDim … endDim (default all of them) as one; a view where it can be. A 0-d tensor becomes [1]. PyTorch: `torch.flatten`. @throws
   * DIM_OUT_OF_RANGE
   */
  flatten(startDim?: number, endDim?: number): Tensor {
    return ops().flatten(this, startDim, endDim)
  }
  /**
   * Views of `size` along `dim` (default 0), the last may be shorter; or of the sizes given, which add up to the extent. PyTorch: `torch.split`.
   * @throws SHAPE_MISMATCH, DIM_OUT_OF_RANGE, INVALID_ARGUMENT
   */
  split(size: number | readonly number[], dim?: number): Tensor[] {
    return ops().split(this, size, dim)
  }
  /**
   * At most `count` views of equal size along `dim` (default 0); the last may be shorter. PyTorch: `torch.chunk`. @throws INVALID_ARGUMENT,
   * DIM_OUT_OF_RANGE
   */
  chunk(count: number, dim?: number): Tensor[] {
    return ops().chunk(this, count, dim)
  }
  /** Views of all slices along `dim` (default 0), without it. PyTorch: `torch.unbind`. @throws DIM_OUT_OF_RANGE */
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
  indexPut(specs: readonly IndexSpec<Tensor>[], values: Tensor | number | boolean, accumulate?: boolean): Tensor {
    return ops().indexPut(this, specs, values, accumulate)
  }
  /** x[specs] = values, or += with accumulate; see index(). */
  indexPut_(specs: readonly IndexSpec<Tensor>[], values: Tensor | number | boolean, accumulate?: boolean): this {
    ops().indexPut_(this, specs, values, accumulate)
    return this
  }
  /**
   * The slices along `dim` whose numbers are in `index` (int32 or whole numbers, [n], none negative): […, extent, …] → […, n, …]. PyTorch: `torch.index_select`.
   * @throws INDEX_OUT_OF_RANGE, DTYPE_MISMATCH
   */
  indexSelect(dim: number, index: Tensor): Tensor {
    return ops().indexSelect(this, dim, index)
  }
  /**
   * Elements picked along `dim`: out[i, j, k] = x[i, index[i, j, k], k] for dim 1. The result has the shape of `index` (int32 or whole numbers, none negative).
   * PyTorch: `torch.gather`. @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH, DTYPE_MISMATCH
   */
  gather(dim: number, index: Tensor): Tensor {
    return ops().gather(this, dim, index)
  }
  /**
   * A copy with src's slices added along `dim` at the places in `index` (int32 or whole numbers, [n]), in their order. PyTorch: `torch.index_add`. @throws
   * INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
   */
  indexAdd(dim: number, index: Tensor, src: Tensor): Tensor {
    return ops().indexAdd(this, dim, index, src)
  }
  /**
   * A copy with out[i, index[i, j, k], k] += src[i, j, k] for dim 1, summed in the order of `dim`. PyTorch: `torch.scatter_add`. @throws
   * INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
   */
  scatterAdd(dim: number, index: Tensor, src: Tensor): Tensor {
    return ops().scatterAdd(this, dim, index, src)
  }
  /**
   * A copy with out[i, index[i, j, k], k] = src[i, j, k] for dim 1; src may be a number or a boolean. Where several are written to one place the last wins, and has
   * the gradient. PyTorch: `torch.scatter`. @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
   */
  scatter(dim: number, index: Tensor, src: Tensor | number | boolean): Tensor {
    return ops().scatter(this, dim, index, src)
  }
  /**
   * A copy whose slices along `dim` at `index` (int32 or whole numbers, [n]) are a number, a boolean or a 0-d tensor. PyTorch: `torch.index_fill`. @throws INDEX_OUT_OF_RANGE,
   * DIM_OUT_OF_RANGE
   */
  indexFill(dim: number, index: Tensor, value: Tensor | number | boolean): Tensor {
    return ops().indexFill(this, dim, index, value)
  }
  /**
   * Elements as if flattened, at indices (int32, or whole numbers) of any shape; negative ones count from the end. PyTorch: `torch.take`. @throws INDEX_OUT_OF_RANGE,
   * DTYPE_MISMATCH
   */
  take(index: Tensor): Tensor {
    return ops().take(this, index)
  }
  /**
   * As gather, with tensor and indices broadcast against each other except in `dim`; without `dim` flattened. PyTorch: `torch.take_along_dim`.
   * @throws INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
   */
  takeAlongDim(index: Tensor, dim?: number): Tensor {
    return ops().takeAlongDim(this, index, dim)
  }
  /**
   * A copy with a number, a boolean or a 0-d tensor where mask (bool) is true; both broadcast, the dtype stays. PyTorch: `torch.masked_fill`. @throws
   * DTYPE_MISMATCH, SHAPE_MISMATCH
   */
  maskedFill(mask: Tensor, value: Tensor | number | boolean): Tensor {
    return ops().maskedFill(this, mask, value)
  }
  /**
   * As `maskedFill`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.masked_fill_`. @throws
   * INPLACE_DTYPE, INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  maskedFill_(mask: Tensor, value: Tensor | number | boolean): this {
    ops().maskedFill_(this, mask, value)
    return this
  }
  /** The elements where mask (bool) is true, as [count]; both broadcast. PyTorch: `torch.masked_select`. @throws DTYPE_MISMATCH, SHAPE_MISMATCH */
  maskedSelect(mask: Tensor): Tensor {
    return ops().maskedSelect(this, mask)
  }
  /** int32 [count, ndim]: where it is not 0. */
  nonzero(): Tensor {
    return ops().nonzero(this)
  }
  /** The lower triangle of the last two dimensions, 0 above diagonal number `diagonal` (default 0). PyTorch: `torch.tril`. @throws SHAPE_MISMATCH */
  tril(diagonal?: number): Tensor {
    return ops().tril(this, diagonal)
  }
  /** The upper triangle of the last two dimensions, 0 below diagonal number `diagonal` (default 0). PyTorch: `torch.triu`. @throws SHAPE_MISMATCH */
  triu(diagonal?: number): Tensor {
    return ops().triu(this, diagonal)
  }
  /**
   * Views along `dim` (default 0): into so many parts, the first ones longer by 1 where it does not divide, or cut at the indices given. PyTorch:
   * `torch.tensor_split`. @throws DIM_OUT_OF_RANGE, INVALID_ARGUMENT
   */
  tensorSplit(parts: number | readonly number[], dim?: number): Tensor[] {
    return ops().tensorSplit(this, parts, dim)
  }
  /** A view with dimension `dim` as several, of which one may be −1. PyTorch: `torch.unflatten`. @throws SHAPE_MISMATCH, DIM_OUT_OF_RANGE */
  unflatten(dim: number, sizes: readonly number[]): Tensor {
    return ops().unflatten(this, dim, sizes)
  }
  /** All elements as one dimension; a view where it can be. PyTorch: `torch.ravel`. */
  ravel(): Tensor {
    return ops().ravel(this)
  }
  /**
   * A view with dimensions `source` at the places `destination`; the others keep their order. PyTorch: `torch.movedim`. @throws DIM_OUT_OF_RANGE,
   * INVALID_ARGUMENT
   */
  movedim(source: DimsArg, destination: DimsArg): Tensor {
    return ops().movedim(this, source, destination)
  }
  /** A view with two dimensions exchanged. PyTorch: `torch.swapaxes`. @throws DIM_OUT_OF_RANGE */
  swapaxes(dim0: number, dim1: number): Tensor {
    return ops().swapaxes(this, dim0, dim1)
  }
  /**
   * The last two dimensions exchanged; a tensor of fewer is itself. PyTorch refuses those: `Tensor.mT`. Test frameworks read every property of what
   * they compare, and an error here would stand in the place of the difference.
   */
  get mT(): Tensor {
    return this.ndim < 2 ? this : ops().transpose(this, -2, -1)
  }
  /** The tensor expanded to a shape, as a view. PyTorch: `torch.broadcast_to`. @throws SHAPE_MISMATCH */
  broadcastTo(shape: readonly number[]): Tensor {
    return ops().broadcastTo(this, shape)
  }
  /** A view of the other tensor's shape. PyTorch: `Tensor.view_as`. @throws SHAPE_MISMATCH, VIEW_NOT_CONTIGUOUS */
  viewAs(other: Tensor): Tensor {
    return ops().viewAs(this, other)
  }
  /** A view expanded to the other tensor's shape. PyTorch: `Tensor.expand_as`. @throws SHAPE_MISMATCH */
  expandAs(other: Tensor): Tensor {
    return ops().expandAs(this, other)
  }
  /**
   * Of a vector the matrix that has it on diagonal number `diagonal` (default 0), of a matrix that diagonal. PyTorch: `torch.diag`. @throws
   * SHAPE_MISMATCH
   */
  diag(diagonal?: number): Tensor {
    return ops().diag(this, diagonal)
  }
  /**
   * The last dimension as the diagonal of planes dim1 × dim2 (default −2, −1), shifted by `offset` (0), zeros elsewhere. PyTorch:
   * `torch.diag_embed`. @throws DIM_OUT_OF_RANGE
   */
  diagEmbed(offset?: number, dim1?: number, dim2?: number): Tensor {
    return ops().diagEmbed(this, offset, dim1, dim2)
  }
  /** A copy with each dimension repeated so often; further counts add dimensions in front. PyTorch: `Tensor.repeat`. @throws INVALID_ARGUMENT */
  repeat(repeats: readonly number[]): Tensor {
    return ops().repeat(this, repeats)
  }
  /** As repeat, but counts may be fewer than dimensions. PyTorch: `torch.tile`. @throws INVALID_ARGUMENT */
  tile(repeats: readonly number[]): Tensor {
    return ops().tile(this, repeats)
  }
  /**
   * Each element (or slice along `dim`) several times in a row; a tensor gives a count for each. Without `dim` flattened. PyTorch:
   * `torch.repeat_interleave`. @throws INVALID_ARGUMENT, DIM_OUT_OF_RANGE
   */
  repeatInterleave(repeats: number | Tensor, dim?: number): Tensor {
    return ops().repeatInterleave(this, repeats, dim)
  }
  /**
   * A copy whose elements are shifted along `dims`, around the end; without `dims` as if flattened. PyTorch: `torch.roll`. @throws
   * DIM_OUT_OF_RANGE, INVALID_ARGUMENT
   */
  roll(shifts: DimsArg, dims?: DimsArg): Tensor {
    return ops().roll(this, shifts, dims)
  }
  /** A copy in which the named dimensions run backwards. PyTorch: `torch.flip`. @throws DIM_OUT_OF_RANGE */
  flip(dims: DimsArg): Tensor {
    return ops().flip(this, dims)
  }
  /** eˣ / Σ eˣ along `dim`, without overflow. PyTorch: `torch.nn.functional.softmax`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE */
  softmax(dim: number): Tensor {
    return ops().softmax(this, dim)
  }
  /** log of softmax along `dim`, without overflow. PyTorch: `torch.nn.functional.log_softmax`. @throws DTYPE_MISMATCH, DIM_OUT_OF_RANGE */
  logSoftmax(dim: number): Tensor {
    return ops().logSoftmax(this, dim)
  }
  /**
   * Negative log likelihood: log-probabilities [N, C], [C] or [N, C, d, …], target classes (int32, or whole numbers) [N], [] or [N, d, …]. Defaults: reduction 'mean',
   * ignoreIndex −100. PyTorch: `torch.nn.functional.nll_loss`. @throws SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE
   */
  nllLoss(target: Tensor, options?: LossArg<NllLossOptions<Tensor>>): Tensor {
    return ops().nllLoss(this, target, options)
  }
  /**
   * Cross entropy of unnormalized logits [N, C], [C] or [N, C, d, …]. The target holds class indices (int32, or whole numbers; [N], [] or [N, d, …]) or probabilities
   * of the logits' shape. Defaults: reduction 'mean', ignoreIndex −100, labelSmoothing 0. PyTorch: `torch.nn.functional.cross_entropy`. @throws
   * SHAPE_MISMATCH, DTYPE_MISMATCH, INDEX_OUT_OF_RANGE
   */
  crossEntropy(target: Tensor, options?: LossArg<CrossEntropyOptions<Tensor>>): Tensor {
    return ops().crossEntropy(this, target, options)
  }
  /**
   * Rows of a table: weight [V, D], indices (int32, or whole numbers) of any shape → […indices, D]. With `sparse` the weight's gradient is a SparseTensor. PyTorch:
   * `torch.nn.functional.embedding`. @throws INDEX_OUT_OF_RANGE, DTYPE_MISMATCH
   */
  embedding(indices: Tensor): Tensor {
    return ops().embedding(this, indices)
  }
  /**
   * Adds alpha · y (alpha: default 1) to the tensor in place and returns it; y broadcasts to its shape. PyTorch: `Tensor.add_`. @throws
   * SHAPE_MISMATCH, INPLACE_DTYPE, INPLACE_OVERLAP, INPLACE_ON_LEAF
   */
  add_(other: Tensor | number, alpha?: number): this {
    ops().add_(this, other, alpha)
    return this
  }
  /**
   * Subtracts alpha · y (alpha: default 1) from the tensor in place and returns it; y broadcasts to its shape. PyTorch: `Tensor.sub_`. @throws
   * SHAPE_MISMATCH, INPLACE_DTYPE, INPLACE_OVERLAP, INPLACE_ON_LEAF
   */
  sub_(other: Tensor | number, alpha?: number): this {
    ops().sub_(this, other, alpha)
    return this
  }
  /**
   * Multiplies the tensor by y in place and returns it; y broadcasts to its shape. PyTorch: `Tensor.mul_`. @throws SHAPE_MISMATCH, INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF
   */
  mul_(other: Tensor | number): this {
    ops().mul_(this, other)
    return this
  }
  /**
   * Divides the tensor by y in place and returns it; y broadcasts to its shape. PyTorch: `Tensor.div_`. @throws SHAPE_MISMATCH, INPLACE_DTYPE for
   * integers, INPLACE_OVERLAP, INPLACE_ON_LEAF
   */
  div_(other: Tensor | number): this {
    ops().div_(this, other)
    return this
  }
  /**
   * Writes src, broadcast and converted to the tensor's dtype, over its elements and returns it. PyTorch: `Tensor.copy_`. @throws SHAPE_MISMATCH,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF
   */
  copy_(src: Tensor): this {
    ops().copy_(this, src)
    return this
  }
  /**
   * Writes one number or boolean into every element and returns the tensor. PyTorch: `Tensor.fill_`. @throws INVALID_ARGUMENT for what its dtype cannot hold,
   * INPLACE_ON_LEAF
   */
  fill_(value: number | boolean): this {
    ops().fill_(this, value)
    return this
  }
  /** Writes 0 into every element and returns the tensor. PyTorch: `Tensor.zero_`. @throws INPLACE_ON_LEAF */
  zero_(): this {
    ops().zero_(this)
    return this
  }
  /**
   * As `neg`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.neg_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  neg_(): this {
    ops().neg_(this)
    return this
  }
  /**
   * As `exp`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.exp_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  exp_(): this {
    ops().exp_(this)
    return this
  }
  /**
   * As `log`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.log_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  log_(): this {
    ops().log_(this)
    return this
  }
  /**
   * As `sqrt`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.sqrt_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  sqrt_(): this {
    ops().sqrt_(this)
    return this
  }
  /**
   * As `sin`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.sin_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  sin_(): this {
    ops().sin_(this)
    return this
  }
  /**
   * As `cos`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.cos_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  cos_(): this {
    ops().cos_(this)
    return this
  }
  /**
   * As `tanh`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.tanh_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  tanh_(): this {
    ops().tanh_(this)
    return this
  }
  /**
   * As `sigmoid`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.sigmoid_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  sigmoid_(): this {
    ops().sigmoid_(this)
    return this
  }
  /**
   * As `relu`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.relu_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  relu_(): this {
    ops().relu_(this)
    return this
  }
  /**
   * As `abs`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.abs_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  abs_(): this {
    ops().abs_(this)
    return this
  }
  /**
   * As `sign`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.sign_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  sign_(): this {
    ops().sign_(this)
    return this
  }
  /**
   * As `pow`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.pow_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  pow_(exponent: Tensor | number): this {
    ops().pow_(this, exponent)
    return this
  }
  /**
   * As `clamp`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.clamp_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  clamp_(min?: number | null, max?: number | null): this {
    ops().clamp_(this, min, max)
    return this
  }
  /**
   * As `floor`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.floor_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  floor_(): this {
    ops().floor_(this)
    return this
  }
  /**
   * As `ceil`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.ceil_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  ceil_(): this {
    ops().ceil_(this)
    return this
  }
  /**
   * As `round`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.round_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  round_(): this {
    ops().round_(this)
    return this
  }
  /**
   * As `trunc`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.trunc_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  trunc_(): this {
    ops().trunc_(this)
    return this
  }
  /**
   * As `reciprocal`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.reciprocal_`. @throws
   * INPLACE_DTYPE, INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  reciprocal_(): this {
    ops().reciprocal_(this)
    return this
  }
  /**
   * As `rsqrt`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.rsqrt_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  rsqrt_(): this {
    ops().rsqrt_(this)
    return this
  }
  /**
   * As `square`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.square_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  square_(): this {
    ops().square_(this)
    return this
  }
  /**
   * As `log1p`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.log1p_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  log1p_(): this {
    ops().log1p_(this)
    return this
  }
  /**
   * As `expm1`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.expm1_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  expm1_(): this {
    ops().expm1_(this)
    return this
  }
  /**
   * As `log2`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.log2_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  log2_(): this {
    ops().log2_(this)
    return this
  }
  /**
   * As `log10`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.log10_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  log10_(): this {
    ops().log10_(this)
    return this
  }
  /**
   * As `exp2`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.exp2_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  exp2_(): this {
    ops().exp2_(this)
    return this
  }
  /**
   * As `tan`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.tan_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  tan_(): this {
    ops().tan_(this)
    return this
  }
  /**
   * As `sinh`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.sinh_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  sinh_(): this {
    ops().sinh_(this)
    return this
  }
  /**
   * As `cosh`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.cosh_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  cosh_(): this {
    ops().cosh_(this)
    return this
  }
  /**
   * As `asin`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.asin_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  asin_(): this {
    ops().asin_(this)
    return this
  }
  /**
   * As `acos`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.acos_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  acos_(): this {
    ops().acos_(this)
    return this
  }
  /**
   * As `atan`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.atan_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  atan_(): this {
    ops().atan_(this)
    return this
  }
  /**
   * As `erf`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.erf_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  erf_(): this {
    ops().erf_(this)
    return this
  }
  /**
   * As `leakyRelu`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.leaky_relu_`. @throws
   * INPLACE_DTYPE, INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  leakyRelu_(negativeSlope?: number): this {
    ops().leakyRelu_(this, negativeSlope)
    return this
  }
  /**
   * As `elu`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.elu_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  elu_(alpha?: number): this {
    ops().elu_(this, alpha)
    return this
  }
  /**
   * As `hardtanh`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.hardtanh_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  hardtanh_(min?: number, max?: number): this {
    ops().hardtanh_(this, min, max)
    return this
  }
  /**
   * As `nanToNum`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.nan_to_num_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  nanToNum_(options?: NanToNumOptions): this {
    ops().nanToNum_(this, options)
    return this
  }
  /**
   * As `remainder`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.remainder_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  remainder_(other: Tensor | number): this {
    ops().remainder_(this, other)
    return this
  }
  /**
   * As `fmod`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.fmod_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  fmod_(other: Tensor | number): this {
    ops().fmod_(this, other)
    return this
  }
  /**
   * As `floorDivide`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.floor_divide_`. @throws
   * INPLACE_DTYPE, INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  floorDivide_(other: Tensor | number): this {
    ops().floorDivide_(this, other)
    return this
  }
  /**
   * As `atan2`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.atan2_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  atan2_(other: Tensor): this {
    ops().atan2_(this, other)
    return this
  }
  /**
   * As `lerp`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.lerp_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  lerp_(end: Tensor, weight: Tensor | number): this {
    ops().lerp_(this, end, weight)
    return this
  }
  /**
   * As `addcmul`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.addcmul_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  addcmul_(a: Tensor, b: Tensor, options?: ValueOptions): this {
    ops().addcmul_(this, a, b, options)
    return this
  }
  /**
   * As `addcdiv`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.addcdiv_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  addcdiv_(a: Tensor, b: Tensor, options?: ValueOptions): this {
    ops().addcdiv_(this, a, b, options)
    return this
  }
  /**
   * As `cumsum`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.cumsum_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  cumsum_(dim: number): this {
    ops().cumsum_(this, dim)
    return this
  }
  /**
   * As `cumprod`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.cumprod_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  cumprod_(dim: number): this {
    ops().cumprod_(this, dim)
    return this
  }
  /**
   * As `tril`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.tril_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  tril_(diagonal?: number): this {
    ops().tril_(this, diagonal)
    return this
  }
  /**
   * As `triu`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.triu_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  triu_(diagonal?: number): this {
    ops().triu_(this, diagonal)
    return this
  }
  /**
   * As `scatterAdd`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.scatter_add_`. @throws
   * INPLACE_DTYPE, INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  scatterAdd_(dim: number, index: Tensor, src: Tensor): this {
    ops().scatterAdd_(this, dim, index, src)
    return this
  }
  /**
   * As `indexAdd`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.index_add_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  indexAdd_(dim: number, index: Tensor, src: Tensor): this {
    ops().indexAdd_(this, dim, index, src)
    return this
  }
  /**
   * As `scatter`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.scatter_`. @throws INPLACE_DTYPE,
   * INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  scatter_(dim: number, index: Tensor, src: Tensor | number | boolean): this {
    ops().scatter_(this, dim, index, src)
    return this
  }
  /**
   * As `indexFill`, written into this tensor, which keeps its shape and dtype and is returned. PyTorch: `Tensor.index_fill_`. @throws
   * INPLACE_DTYPE, INPLACE_OVERLAP, INPLACE_ON_LEAF, SHAPE_MISMATCH
   */
  indexFill_(dim: number, index: Tensor, value: Tensor | number | boolean): this {
    ops().indexFill_(this, dim, index, value)
    return this
  }
}

/** True for a tensor of any copy of this package (`instanceof` fails across jest's realms). PyTorch: `torch.is_tensor`. */
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

nameOperations(Object.getOwnPropertyNames(Tensor.prototype))
