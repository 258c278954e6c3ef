/**
 * Tensor: a view (shape, strides, offset) on a storage, with a slot for autograd. It computes nothing itself, and imports no operation: they install themselves as methods.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { CPU, type Memory } from '../heap/memory.js'
import { nameOperations, Storage } from '../heap/storage.js'
import { allocate, BYTES_PER_ELEMENT, type DType, type TypedArray, viewOn } from '../values/dtype.js'
import { shapeText } from '../values/errors.js'
import { formatTensor } from '../values/format.js'
import { type JsonNumber, type TensorJson, toJson } from '../values/json.js'
import { type NestedArray, nest, snapshot } from '../values/read.js'
import { contiguousStrides, isContiguous, numelOf, type Shape, sameShape } from '../values/shape.js'
import { type Device, deviceOf, kernelsAt } from './device.js'
import type { BackwardPassOptions, GradFunction, GradOps, RemovableHandle } from './grad-ops.js'

/** Autograd's data in a tensor. Autograd extends it and narrows the slot. */
export interface AutogradMeta {
  /** True for a leaf that wants a gradient and for every tensor with a history. */
  requiresGrad: boolean
  grad: Tensor | null
  /** Whether the pass that computed `grad` was its only holder, and no code has asked the tensor for its `.grad` since. */
  isGradUnseen: boolean
  gradFn: object | null
  /** Which of gradFn's forward outputs this tensor is. */
  outputNr: number
}

/** Autograd's methods. Set while modules load, again when autograd is loaded. */
let handler: GradOps<Tensor> | null = null

/** @returns the one before */
export function installOpHandler(next: GradOps<Tensor>): GradOps<Tensor> | null {
  const before = handler
  handler = next
  return before
}

/**
 * An array of numbers of one dtype in any number of dimensions, with its place in the graph of gradients. Operations are methods and functions of
 * the same name; `tensor`, `zeros`, `randn` and others make one. PyTorch: `torch.Tensor`.
 * @example
 * const x = tensor([[1, 2], [3, 4]])
 * x.shape // [2, 2]
 * x.dtype // 'float32'
 * x.sum().itemSync() // 10
 */
export class Tensor {
  // `declare`: plain assignments in the constructor, without a definition to undefined first; a tensor is made on every operation.
  /** The memory that it shares with its views. @internal */
  declare readonly storage: Storage
  /** The extents, from the outermost dimension on; [] for a scalar. */
  declare readonly shape: Shape
  /** For each dimension, how many elements of the storage lie between two neighbours. */
  declare readonly strides: Shape
  /** The place of the first element in the storage, in elements. */
  declare readonly offset: number
  /** 'float32', 'float64', 'int32' or 'bool'. */
  declare readonly dtype: DType
  /** How many elements the tensor has. */
  declare readonly numel: number
  /** Whether the elements are dense and in row-major order, from `offset` on. */
  declare readonly isContiguous: boolean
  /** The slot for autograd's data; null until autograd fills it. */
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
    const out = Tensor.uninitialized(dtype, shape, memory)
    // All but blocks of the heap are zeros by themselves.
    if (out.storage.lease !== null) kernelsAt(memory).fill[dtype](0, out)
    return out
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

  /** How many dimensions the tensor has. */
  get ndim(): number {
    return this.shape.length
  }

  /** The device that stores the tensor: `device('cpu')` for each tensor of this process, whichever backend made it. PyTorch: `Tensor.device`. */
  get device(): Device {
    return deviceOf(this.storage.memory)
  }

  /** Whether the tensor stores only some of its rows; then it is a `SparseTensor`. */
  get isSparse(): boolean {
    return false
  }

  /** Whether gradients flow to this tensor: it is a leaf with `requiresGrad`, or was computed from one. */
  get requiresGrad(): boolean {
    return this.autograd?.requiresGrad === true
  }

  /** Whether no recorded operation made the tensor. Only leaves get a `.grad`, unless `retainGrad()` was called. */
  get isLeaf(): boolean {
    return this.autograd === null || this.autograd.gradFn === null
  }

  /** The gradient that backward passes have added up; null before the first pass. Distributed passes leave their gradients in the context. */
  get grad(): Tensor | null {
    const { autograd } = this
    if (autograd === null) return null
    autograd.isGradUnseen = false
    return autograd.grad
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
    const { autograd } = this
    if (autograd !== null) {
      const old = autograd.isGradUnseen ? autograd.grad : null
      autograd.grad = value
      autograd.isGradUnseen = false
      // No code can use the old gradient any more.
      if (value === null && old?.storage.isLeased === true) old.storage.close()
    } else if (value !== null) {
      throw new PostgradError('GRAD_NOT_REQUIRED', {
        op: 'grad',
        expected: 'a tensor that requires a gradient',
        got: 'one that does not',
        remedy: 'Call requiresGrad_() first.',
      })
    }
  }

  /**
   * The node of the recorded operation that made this tensor; null for a leaf.
   * @throws INPLACE_ON_VIEW if the tensor is a view that a custom function returned, or that was made under noGrad, and its base was written to with recording
   */
  get gradFn(): GradFunction<Tensor> | null {
    return this.autograd === null ? null : (this.autograd.gradFn as GradFunction<Tensor> | null)
  }

  /** Whether `retainGrad()` was called on this tensor, which is not a leaf. */
  get retainsGrad(): boolean {
    return ops().retainsGrad(this)
  }

  /**
   * Sets whether this leaf gets a gradient, and returns the leaf.
   * @throws REQUIRES_GRAD_NEEDS_FLOAT if the tensor is int32 or bool; REQUIRES_GRAD_ON_NON_LEAF if `flag` is false and the tensor is not a leaf
   * @example tensor([1, 2]).requiresGrad_().requiresGrad // true
   */
  requiresGrad_(flag = true): this {
    ops().requiresGrad_(this, flag)
    return this
  }

  /**
   * Adds d this / d leaf to `.grad` of every leaf (or of `options.inputs`) from which this tensor was computed. `gradient` has the shape of this tensor; a
   * scalar does not need it. PyTorch: `Tensor.backward`.
   * @param gradient the gradient of this tensor, in its shape; may be left out for a scalar
   * @throws the errors of `backward`
   * @example
   * const x = tensor([1, 2], { requiresGrad: true })
   * x.square().sum().backward()
   * x.grad // [2, 4]
   */
  backward(gradient?: Tensor | null, options?: BackwardPassOptions<Tensor>): void {
    ops().backward(this, gradient, options)
  }

  /**
   * The same elements on the same storage, without a history.
   * @example
   * const y = tensor([1, 2], { requiresGrad: true }).mul(2).detach()
   * y.requiresGrad // false
   * y.toArray() // [2, 4]
   */
  detach(): Tensor {
    return ops().detach(this)
  }

  /**
   * Removes the history of this tensor, which becomes a leaf that requires no grad, and returns it.
   * @throws DETACH_VIEW if the tensor is a view, since it shares the history of its base
   */
  detach_(): this {
    ops().detach_(this)
    return this
  }

  /**
   * Lets backward passes add the gradient of this tensor to its `.grad`, although it is not a leaf. For a leaf the call does nothing. After an in-place
   * operation, it is the gradient of the new value. If hooks replace the gradient, hooks that were registered earlier run first. PyTorch: `Tensor.retain_grad`.
   * @throws RETAIN_GRAD_NEEDS_GRAD if the tensor does not require grad
   * @example
   * const y = tensor([1, 2], { requiresGrad: true }).mul(2).retainGrad()
   * y.square().sum().backward()
   * y.grad // [4, 8]
   */
  retainGrad(): this {
    ops().retainGrad(this)
    return this
  }

  /**
   * Calls `hook` with the complete gradient of this tensor in every backward pass that reaches it. A tensor that the hook returns replaces the gradient. A hook
   * may also write into the gradient (`g.clamp_(-1, 1)`). After an in-place operation, the hook stays with the value that it was registered for.
   * @throws HOOK_NEEDS_GRAD if the tensor does not require grad
   * @example
   * const x = tensor([3], { requiresGrad: true })
   * x.registerHook((g) => g.clamp(-1, 1))
   * x.square().sum().backward()
   * x.grad // [1]
   */
  registerHook(hook: (grad: Tensor) => Tensor | undefined): RemovableHandle {
    return ops().registerHook(this, hook)
  }

  /**
   * Calls `hook` with this leaf each time a backward pass has added to its `.grad`. Passes that put gradients elsewhere do not call it: `grad(…)`, and a
   * distributed pass, which leaves them in its context.
   * @throws HOOK_NEEDS_LEAF if the tensor is not a leaf that requires grad
   */
  registerPostAccumulateGradHook(hook: (leaf: Tensor) => void): RemovableHandle {
    return ops().registerPostAccumulateGradHook(this, hook)
  }

  /**
   * Frees the memory of this tensor now, instead of when it is collected. This closes all views of its storage. Reading the tensor, computing with it, or a
   * backward pass that needs it, then fails with TENSOR_CLOSED. A second call does nothing. PyTorch: `del`, but without counting references.
   * @example
   * const x = zeros([1024, 1024])
   * x.close()
   * x.isClosed // true
   */
  close(): void {
    this.storage.close()
  }

  [Symbol.dispose](): void {
    this.storage.close()
  }

  /** Whether `close()` has freed the memory of this tensor. */
  get isClosed(): boolean {
    return this.storage.isClosed
  }

  /**
   * A copy of the elements in row-major order, once the device has computed them. bool gives 0 and 1.
   * @example await tensor([[1, 2], [3, 4]]).data() // [1, 2, 3, 4]
   */
  async data(): Promise<TypedArray> {
    const { storage, offset, numel } = this
    const { buffers } = storage.memory
    // Of a tensor that is closed or sparse, `host` cannot be had, wherever it is.
    const { host } = storage
    if (buffers === null || numel === 0) return this.snapshot('data', host ?? allocate(this.dtype, 0), offset)
    // From its first element to its last one.
    const size = BYTES_PER_ELEMENT[this.dtype]
    const span = 1 + this.shape.reduce((sum, extent, d) => sum + (extent - 1) * this.strides[d]!, 0)
    const bytes = await buffers.read(storage.device!.buffer, offset * size, span * size)
    return this.snapshot('data', viewOn(this.dtype, bytes.buffer, bytes.byteOffset, span), 0)
  }

  /**
   * The only element, once the device has computed it. PyTorch: `Tensor.item`.
   * @throws NOT_A_SCALAR if the tensor does not have exactly one element
   * @example await tensor([[1, 2], [3, 4]]).sum().item() // 10
   */
  async item(): Promise<number> {
    this.checkSingle('item')
    return (await this.data())[0]!
  }

  /**
   * A copy of the elements in row-major order, at once. bool gives 0 and 1.
   * @throws READ_NOT_SYNCHRONOUS if the device computes asynchronously
   * @example tensor([[1, 2], [3, 4]]).dataSync() // [1, 2, 3, 4]
   */
  dataSync(): TypedArray {
    return this.snapshot('dataSync')
  }

  /**
   * The only element, at once.
   * @throws NOT_A_SCALAR if the tensor does not have exactly one element; READ_NOT_SYNCHRONOUS if the device computes asynchronously
   * @example tensor([[1, 2], [3, 4]]).sum().itemSync() // 10
   */
  itemSync(): number {
    this.checkSingle('itemSync')
    return this.hostElements('itemSync', 'item()')[this.offset]!
  }

  /**
   * The elements as nested arrays, with booleans for bool; a 0-d tensor gives its element. PyTorch: `Tensor.tolist`.
   * @throws READ_NOT_SYNCHRONOUS if the device computes asynchronously
   * @example tensor([[1, 0], [3, 4]]).gt(0).toArray() // [[true, false], [true, true]]
   */
  toArray(): NestedArray {
    return nest<number | boolean>(this.snapshot('toArray'), this.shape, this.dtype === 'bool' ? (value) => value !== 0 : (value) => value)
  }

  /**
   * The dtype, shape and data for `JSON.stringify`. `tensor(JSON.parse(text))` makes the same tensor again, without a history. `JSON.stringify` passes a key;
   * test frameworks that print a difference pass none, and must not fail. So without a key, the `data` of a tensor that cannot be read is the code of the
   * error, which `tensor()` refuses.
   * @throws READ_NOT_SYNCHRONOUS if a key is passed and the device computes asynchronously; TENSOR_CLOSED if a key is passed and the tensor is closed
   * @example tensor([1, 2]).toJSON() // { dtype: 'float32', shape: [2], data: [1, 2] }
   */
  toJSON(key?: string): TensorJson {
    try {
      return toJson(this.snapshot('toJSON'), this.shape, this.dtype)
    } catch (error) {
      if (key !== undefined || !isPostgradError(error)) throw error
      return { dtype: this.dtype, shape: [...this.shape], data: error.code as JsonNumber }
    }
  }

  /**
   * The text that PyTorch prints for the tensor. It has no elements if the device computes asynchronously, or the tensor is closed.
   * @example String(tensor([1.5, 2])) // 'tensor([1.5000, 2.0000])'
   */
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
      message: `a tensor of shape ${shapeText(this.shape)} is not a number: JavaScript's operators (+, -, *, /, <, ==) and functions of numbers do not compute with tensors`,
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

  // Operations are methods, too: `ops/define/define.ts` installs them, `ops/types.ts` has their types.

  /** The tensor itself if it is in this process, else a copy here, once its device has computed it. PyTorch: `Tensor.cpu`. */
  async cpu(): Promise<Tensor> {
    if (this.storage.memory === CPU) return this
    // A tensor of its own: what is written to this one meanwhile changes neither the values nor the history of the copy.
    const read = this.requiresGrad ? this.clone() : this
    return ops().arrived(read, Tensor.over(this.dtype, this.shape, await read.data()))
  }

  /**
   * A view with all dimensions in reverse order. PyTorch: `Tensor.T`.
   * @example tensor([[1, 2], [3, 4]]).T // [[1, 3], [2, 4]]
   */
  get T(): Tensor {
    return this.permute([...this.shape.keys()].reverse())
  }
  /**
   * A view with the last two dimensions exchanged. A tensor with fewer dimensions returns itself (PyTorch refuses it), since test frameworks read every
   * property. PyTorch: `Tensor.mT`.
   * @example zeros([8, 2, 3]).mT // shape [8, 3, 2]
   */
  get mT(): Tensor {
    return this.ndim < 2 ? this : this.transpose(-2, -1)
  }
}

/**
 * Whether `value` is a tensor of any copy of this package; `instanceof` fails across the realms of jest. PyTorch: `torch.is_tensor`.
 * @example [isTensor(tensor(1)), isTensor([1])] // [true, false]
 */
export function isTensor(value: unknown): value is Tensor {
  return typeof value === 'object' && value !== null && 'storage' in value && 'strides' in value && 'autograd' in value
}

/** As `t.grad`, for code that keeps nothing of the gradient. */
export function peekGrad(t: Tensor): Tensor | null {
  return t.autograd === null ? null : t.autograd.grad
}

/** The installed handler. @throws OPS_NOT_LOADED when this file was imported without the package's doors */
function ops(): GradOps<Tensor> {
  if (handler !== null) return handler
  throw new PostgradError('OPS_NOT_LOADED', {
    op: 'Tensor',
    message: 'no operations are loaded in this thread',
    remedy: "Import from '@postgrad/tensor' or 'postgrad'.",
  })
}

nameOperations(Object.getOwnPropertyNames(Tensor.prototype))
