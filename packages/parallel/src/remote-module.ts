/**
 * A module that lives on another worker and is called as if it were here: gradients return through a distributed context, its parameters are
 * references. Programs that train use it; it uses RRef and the few functions that run on the owner. PyTorch: `torch.distributed.nn.RemoteModule`.
 */
import assert from 'node:assert'
import { PostgradError } from '@postgrad/base'
import { Module, type WalkOptions } from '@postgrad/nn'
import { type CallOptions, call, expose, type Future, OwnerRRef, RRef, remote, rref, type Sendable, type Target } from '@postgrad/rpc'
import { currentRuntime, registerValueType, type travels } from '@postgrad/rpc/internal'
import { type DeviceSpec, type Tensor, withDevice } from '@postgrad/tensor'
import { argumentText, invalidArgument } from '@postgrad/tensor/internal'

/** A module with a `forward`. */
// biome-ignore lint/suspicious/noExplicitAny: a module of any constructor and any forward; `unknown[]` would refuse every typed one
export type ForwardModule = Module & { forward(...args: any[]): any }
/** A class of modules, for `RemoteModule`. It must be exposed on the worker where the module will live. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export type ModuleClass<M extends ForwardModule = ForwardModule> = new (...args: any[]) => M

type ForwardArgs<M extends ForwardModule> = Parameters<M['forward']>
type ForwardResult<M extends ForwardModule> = Awaited<ReturnType<M['forward']>>
/** The constructor's arguments; may be left out if it takes none. */
type Rest<A extends readonly unknown[]> = [] extends A ? [args?: Readonly<Sendable<A>>] : [args: Readonly<Sendable<A>>]

/**
 * A module that lives on another worker, and that you call as if it were here. In a distributed context gradients return through it. PyTorch:
 * `torch.distributed.nn.RemoteModule`.
 *
 * A RemoteModule has these methods of `Module`: `forward`, `train`, `eval` and `toString`. The others fail with REMOTE_MODULE_UNSUPPORTED: `parameters`, `namedParameters`,
 * `buffers`, `namedBuffers`, `children`, `namedChildren`, `modules`, `namedModules`, `apply`, `requiresGrad_`, `zeroGrad`, `to`, `cpu`, `registerBuffer`,
 * `stateDict`, `loadStateDict`, `getParameter`, `getBuffer`, `getSubmodule`, `registerForwardPreHook`, `registerForwardHook`, `registerFullBackwardHook`, and
 * `extraRepr`.
 * @example
 * const model = new RemoteModule('worker1', Linear, [2, 4]) // the program has: expose({ Linear })
 * const output = await model.forward(x)
 * output.shape // [2, 4]
 */
export class RemoteModule<
  M extends ForwardModule = ForwardModule,
  // biome-ignore lint/suspicious/noExplicitAny: only the compiler's way from a class to what its constructor takes
  A extends readonly unknown[] = any[],
> extends Module {
  /** @internal */
  declare readonly [travels]: true
  private readonly moduleRref: RRef<M>
  /** Where its kernels run; null: on the owner's own device. */
  private readonly device: string | null

  /**
   * Makes a module on a worker. The constructor returns at once. `ready()` and every use wait for the module, and reject with the error of its constructor.
   * @param remoteDevice a worker, or 'worker1/wasm': the name of a worker, and the device on which the module is made and computes
   * @param moduleClass a class that is exposed on that worker; the arguments of its constructor must be able to travel
   * @throws INVALID_ARGUMENT, REMOTE_DEVICE_INVALID, UNKNOWN_WORKER, FUNCTION_NOT_EXPOSED, WIRE_UNSUPPORTED_VALUE, WORKER_DIED or RPC_NOT_INITIALIZED
   */
  constructor(remoteDevice: Target, moduleClass: new (...args: A) => M, ...rest: Rest<A>)
  /** Uses a module that exists on another worker. PyTorch: `RemoteModule.init_from_module_rref`. @throws REMOTE_DEVICE_INVALID if that worker does not own the module */
  constructor(remoteDevice: Target, moduleRref: RRef<M>)
  constructor(remoteDevice: Target, source: ModuleClass<M> | RRef<M>, ...[args = []]: readonly [args?: readonly unknown[]]) {
    super()
    if (!Array.isArray(args)) throw noList(args)
    const { worker, device } = parseRemoteDevice(remoteDevice)
    this.device = device
    if (source instanceof RRef) {
      if (!isOwner(worker, source)) throw invalidDevice(remoteDevice, `the worker that owns the reference, '${source.ownerName()}'`)
      this.moduleRref = source
    } else {
      const { registry } = currentRuntime()
      this.moduleRref = remote(worker, makeModule, [registry.nameOf(source), args, device]) as unknown as RRef<M>
    }
  }

  /** Uses a module that exists on another worker. PyTorch: `RemoteModule.init_from_module_rref`. @throws REMOTE_DEVICE_INVALID if that worker does not own the module */
  static initFromModuleRref<M extends ForwardModule>(remoteDevice: Target, moduleRref: RRef<M>): RemoteModule<M> {
    return new RemoteModule(remoteDevice, moduleRref)
  }

  /** The name of the owner, and the device if one was given: 'worker1' or 'worker1/wasm'. */
  get remoteDevice(): string {
    const name = this.moduleRref.ownerName()
    return this.device === null ? name : `${name}/${this.device}`
  }

  /**
   * Waits until the module exists.
   * @throws NOT_A_MODULE if the class made something else; DEVICE_UNKNOWN if the owner does not have the device; FUNCTION_NOT_EXPOSED if the class is not
   * exposed there; the errors of the module's constructor, and of `toHere`
   */
  ready(options: CallOptions = {}): Future<void> {
    return this.moduleRref.created(options)
  }

  /** Runs the forward of the module on its owner. @throws the errors of that forward, and of `call` */
  forward(...args: ForwardArgs<M>): Future<ForwardResult<M>> {
    return this.forwardWith({}, ...args)
  }

  /** The same as `forward`, under PyTorch's name. PyTorch: `forward_async`. */
  forwardAsync(...args: ForwardArgs<M>): Future<ForwardResult<M>> {
    return this.forwardWith({}, ...args)
  }

  /** Runs `forward` with a deadline or a signal. */
  forwardWith(options: CallOptions, ...args: ForwardArgs<M>): Future<ForwardResult<M>> {
    return call(this.moduleRref.owner(), forwardThere, [this.moduleRref, this.device, args], options) as Future<ForwardResult<M>>
  }

  /**
   * References to the parameters, for a DistributedOptimizer. The worker of the module owns the parameters. You may dispose of the references as soon as the
   * optimizer is made.
   */
  remoteParameters({ recurse = true }: WalkOptions = {}): Future<RRef<Tensor>[]> {
    return call(this.moduleRref.owner(), parametersThere, [this.moduleRref, recurse])
  }

  /** The reference to the module. PyTorch: `get_module_rref`. */
  getModuleRref(): RRef<M> {
    return this.moduleRref
  }

  /**
   * Sets training mode (or evaluation mode, if `mode` is false) of the module on its owner. Later calls from this worker find the mode set, since calls from
   * one worker to another begin in order.
   */
  override train(mode = true): this {
    this.training = mode
    // Every later use throws such an error (its constructor failed, its worker died).
    call(this.moduleRref.owner(), trainThere, [this.moduleRref, mode]).catch(() => {})
    return this
  }

  /** Sets evaluation mode of the module on its owner: `train(false)`. */
  override eval(): this {
    return this.train(false)
  }

  /** Releases the reference to the module. The owner drops the module with the last reference. */
  dispose(): void {
    this.moduleRref.dispose()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  override toString(): string {
    return `RemoteModule(${this.remoteDevice}, ${this.moduleRref})`
  }
}

/** Methods that do not work for a module elsewhere. Of `Module`'s methods only forward, train, eval and toString are left. */
const UNSUPPORTED = [
  ...['parameters', 'namedParameters', 'buffers', 'namedBuffers', 'children', 'namedChildren', 'modules', 'namedModules', 'apply'],
  ...[
    'requiresGrad_',
    'zeroGrad',
    'to',
    'cpu',
    'registerBuffer',
    'stateDict',
    'loadStateDict',
    'getParameter',
    'getBuffer',
    'getSubmodule',
  ],
  ...['registerForwardPreHook', 'registerForwardHook', 'registerFullBackwardHook', 'extraRepr'],
] as const satisfies readonly (keyof Module)[]

for (const method of UNSUPPORTED) {
  Object.defineProperty(RemoteModule.prototype, method, {
    configurable: true,
    value: () => {
      throw notSupported(method)
    },
  })
}

function noList(args: unknown): PostgradError {
  const expected = 'what the constructor of the module takes in an array'
  return invalidArgument('RemoteModule', expected, argumentText(args), "Write new RemoteModule('worker1', Linear, [2, 4]).")
}

// --- on the owner

function makeModule(name: string, args: readonly unknown[], device: string | null): Module {
  const worker = currentRuntime()
  const { target, isClass } = worker.registry.lookup(name, worker.info.name)
  const made = onDevice(device, () => (isClass ? (new (target as ModuleClass)(...args) as unknown) : null))
  if (made instanceof Module && 'forward' in made && typeof made.forward === 'function') return made
  throw new PostgradError('NOT_A_MODULE', {
    op: 'RemoteModule',
    expected: `'${name}' to be a class of modules, so that new ${name}(…) gives an instance of Module with a forward`,
    got: isClass ? `an instance of ${(made as object).constructor?.name}` : 'a function',
    remedy: 'Expose a class that extends Module and has a forward.',
    values: { name },
  })
}

/** A module that is there is used in the call's own turn, so that calls keep their order. */
function moduleOf<T>(ref: RRef<ForwardModule>, use: (module: ForwardModule) => T): T | Promise<T> {
  return ref instanceof OwnerRRef && ref.hasValue ? use(ref.localValue()) : ref.toHere().then(use)
}

const forwardThere = (ref: RRef<ForwardModule>, device: string | null, args: readonly unknown[]): unknown =>
  moduleOf(ref, (module) => onDevice(device, () => module.forward(...args)))

const parametersThere = (ref: RRef<ForwardModule>, recurse: boolean): RRef<Tensor>[] | Promise<RRef<Tensor>[]> =>
  moduleOf(ref, (module) => module.parameters({ recurse }).map((parameter) => rref(parameter)))

const trainThere = (ref: RRef<ForwardModule>, mode: boolean): void | Promise<void> =>
  moduleOf(ref, (module) => {
    module.train(mode)
  })

expose({
  'postgrad.remoteModule.make': makeModule,
  'postgrad.remoteModule.forward': forwardThere,
  'postgrad.remoteModule.parameters': parametersThere,
  'postgrad.remoteModule.train': trainThere,
})

function onDevice<T>(device: string | null, fn: () => T): T {
  return device === null ? fn() : withDevice(device as DeviceSpec, fn)
}

// --- what travels, and what is refused

/** Only what a RemoteModule is made of; what a program adds to one stays where it is. PyTorch: `_REMOTE_MODULE_PICKLED_ATTRIBUTES`. */
registerValueType<RemoteModule>({
  name: 'RemoteModule',
  type: RemoteModule,
  encode: (module) => [parseRemoteDevice(module.remoteDevice).device, module.getModuleRref(), module.training],
  decode(plain) {
    assert(Array.isArray(plain) && plain.length === 3)
    const [device, ref, training] = plain as [string | null, RRef<ForwardModule>, boolean]
    assert((device === null || typeof device === 'string') && ref instanceof RRef && typeof training === 'boolean')
    const module = new RemoteModule(device === null ? ref.owner() : `${ref.ownerName()}/${device}`, ref)
    module.training = training
    return module
  },
})

/** 'worker', 'worker/device', or a worker by id or info. */
function parseRemoteDevice(remoteDevice: Target): { readonly worker: Target; readonly device: string | null } {
  if (typeof remoteDevice !== 'string') return { worker: remoteDevice, device: null }
  const [worker, device, ...rest] = remoteDevice.split('/')
  if (rest.length > 0 || worker === '' || device === '') throw invalidDevice(remoteDevice, "'worker' or 'worker/device'")
  return { worker: worker!, device: device ?? null }
}

function isOwner(worker: Target, ref: RRef): boolean {
  const { name, id } = ref.owner()
  return worker === name || worker === id || (typeof worker === 'object' && worker.id === id)
}

function invalidDevice(remoteDevice: Target, expected: string): PostgradError {
  return new PostgradError('REMOTE_DEVICE_INVALID', {
    op: 'RemoteModule',
    expected,
    got: typeof remoteDevice === 'object' ? `'${remoteDevice.name}'` : `'${remoteDevice}'`,
    remedy: "Pass a worker's name, and after a slash a device if it is not the worker's own: 'worker1/wasm'.",
  })
}

function notSupported(method: string): PostgradError {
  return new PostgradError('REMOTE_MODULE_UNSUPPORTED', {
    op: `RemoteModule.${method}`,
    message: `Method \`${method}\` not supported for RemoteModule`,
    remedy:
      method === 'parameters'
        ? 'Please use `remoteParameters` instead. To train them: new DistributedOptimizer(SGD, await module.remoteParameters(), { lr }).'
        : 'Run it on the owner: call a function there with getModuleRref() as its argument.',
    values: { method },
  })
}
