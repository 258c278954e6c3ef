/**
 * Checkpointing: a part of the forward pass keeps its inputs instead of the tensors for its derivatives, and runs again when backward first
 * needs one of these. It saves memory and costs time. PyTorch: `torch.utils.checkpoint` with `use_reentrant=False`.
 *
 *     forward    fn runs once and records its graph as always, but every saved variable in it holds only its number
 *     backward   the first of them that is read runs fn again; the i-th saved variable of that run has the tensor for the i-th one of the first run
 *
 * So the graph of the first run is the one that backward walks: `grad`, hooks, createGraph, parameters captured by fn and distributed passes work as
 * without a checkpoint. The graph of the second run is thrown away, except under createGraph, where it is the history of what was saved.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope, isThenable, withScope } from '@postgrad/base/internal'
import { currentGenerator, Generator, type GeneratorState, isTensor, type Tensor } from '@postgrad/tensor'
import { argumentText, checkFunction, invalidArgument, shapeText, withoutTemporaries } from '@postgrad/tensor/internal'
import { isGradEnabled } from '../graph/grad-mode.js'
import { type Packed, type Packer, SavedVariable, withPacker } from '../graph/saved-variable.js'

type AnyFn = (...args: readonly unknown[]) => unknown

/**
 * Returns `fn(...args)`, but keeps only the arguments for backward, not the results in between. Backward runs `fn` a second time, which saves memory and costs
 * time. `fn` draws the same random numbers again, so dropout repeats. It must be synchronous, compute the same each time, and have no effects that may not
 * happen twice (updating a running mean is one). Pass tensors as arguments, since later writes to them are noticed; a tensor that `fn` captures stays alive.
 * Checkpoints may be nested. Under noGrad `checkpoint` only calls `fn`. PyTorch: `torch.utils.checkpoint.checkpoint`.
 * @throws CHECKPOINT_ASYNC if `fn` returns a promise; CHECKPOINT_MISMATCH from backward, if `fn` does something else the second time
 * @example
 * const x = tensor([1, 2], { requiresGrad: true })
 * checkpoint((y: Tensor) => y.mul(2).square(), x).sum().backward()
 * x.grad // [8, 16]
 */
export function checkpoint<A extends readonly unknown[], R>(fn: (...args: A) => R, ...args: A): R {
  checkFunction('checkpoint', 'the part to compute again', fn)
  if (!isGradEnabled()) return fn(...args)
  const region = new Region(fn as unknown as AnyFn, args)
  const result = withPacker(region, () => fn(...args))
  if (isThenable(result)) {
    // Nobody waits for it any more.
    result.then(undefined, () => {})
    throw new PostgradError('CHECKPOINT_ASYNC', {
      op: 'checkpoint',
      expected: 'a function that computes its result at once',
      got: 'one that gives a promise',
      remedy: 'Checkpoint the parts between the awaits. SyncBatchNorm, and a module that contains one, must be awaited.',
    })
  }
  return result
}

/**
 * Runs functions one after the other on one input, in `segments` parts of about equal length. All parts but the last are checkpoints, since backward needs the
 * last part first. PyTorch: `torch.utils.checkpoint.checkpoint_sequential`.
 * @param segments from 1 to the number of functions
 * @throws INVALID_ARGUMENT if `segments` is not from 1 to the number of functions, or an argument is not valid; the errors of `checkpoint`
 * @example checkpointSequential([(x) => x.mul(2), (x) => x.add(1), (x) => x.square()], 2, tensor([1, 2])) // [9, 25]
 */
export function checkpointSequential(functions: readonly ((x: Tensor) => Tensor)[], segments: number, input: Tensor): Tensor {
  if (!Array.isArray(functions)) throw invalidArgument('checkpointSequential', 'an array of functions', argumentText(functions))
  for (const fn of functions) checkFunction('checkpointSequential', 'each part', fn)
  if (!Number.isInteger(segments) || segments < 1 || segments > functions.length) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'checkpointSequential',
      expected: `segments from 1 to ${functions.length}, the number of functions`,
      got: String(segments),
    })
  }
  const size = Math.floor(functions.length / segments)
  const run = (from: number, to: number) => (x: Tensor) => functions.slice(from, to).reduce((value, fn) => fn(value), x)
  let x = input
  for (let i = 0; i < segments - 1; i++) x = checkpoint(run(i * size, (i + 1) * size), x)
  return run((segments - 1) * size, functions.length)(x)
}

/** A saved variable of the first run, to notice that the one of the second run differs. */
interface Expected {
  readonly shape: readonly number[]
  readonly dtype: string
}

/** One checkpoint: numbers the saved variables of the first run and gives them those of the second. */
class Region implements Packer {
  private fn: AnyFn | null
  private args: readonly unknown[]
  private readonly random: GeneratorState
  private readonly device: object | null
  private readonly expected: Expected[] = []
  /** The variables that the second run saved; null until backward needs them. */
  private held: readonly SavedVariable[] | null = null
  private heldHaveHistory = false
  /** Saved variables that backward has not released. */
  private alive = 0

  constructor(fn: AnyFn, args: readonly unknown[]) {
    this.fn = fn
    // Made before this region packs: within an outer checkpoint they belong to that one.
    this.args = args.map((arg) => (isTensor(arg) ? new SavedVariable(arg) : arg))
    this.random = currentGenerator().state()
    this.device = currentScope().device
  }

  pack(_: SavedVariable, { shape, dtype }: Tensor): Packed {
    const index = this.expected.push({ shape, dtype }) - 1
    this.alive++
    return { unpack: (op) => this.unpack(index, op), release: () => this.release(index) }
  }

  private unpack(index: number, op: string): Tensor {
    const history = isGradEnabled()
    if (this.held === null || (history && !this.heldHaveHistory)) this.held = this.runAgain(history)
    return this.held[index]!.unpack(op)
  }

  private release(index: number): void {
    this.held?.[index]?.release()
    if (--this.alive > 0) return
    this.held = null
    this.fn = null
    for (const arg of this.args) if (arg instanceof SavedVariable) arg.release()
    this.args = []
  }

  private runAgain(history: boolean): SavedVariable[] {
    const fn = this.fn!
    const args = this.args.map((arg) => (arg instanceof SavedVariable ? arg.unpack('checkpoint') : arg))
    const saved: SavedVariable[] = []
    const recorder: Packer = {
      pack: (variable, { shape, dtype }) => {
        const expected = this.expected[saved.length]
        if (expected === undefined || expected.dtype !== dtype || shapeText(expected.shape) !== shapeText(shape)) {
          throw mismatch(saved.length, expected, { shape, dtype })
        }
        saved.push(variable)
        return null
      },
    }
    const generator = new Generator()
    generator.restore(this.random)
    withScope({ gradEnabled: true, generator, device: this.device }, () =>
      withoutTemporaries(() => withPacker(recorder, () => fn(...args))),
    )
    if (saved.length < this.expected.length) throw mismatch(saved.length, this.expected[saved.length], undefined)
    this.heldHaveHistory = history
    // With a history, nodes of the second run release its saved variables when they have run, so these are new ones. Without a history no node of it will run.
    // Each is gone as soon as it is released, and not with the last of them.
    const held = (variable: SavedVariable) => {
      if (history) return new SavedVariable(variable.unpack('checkpoint'))
      const leaf = variable.withoutHistory()
      if (leaf !== variable) variable.release()
      return leaf
    }
    return withPacker(null, () => saved.map(held))
  }
}

function mismatch(index: number, expected: Expected | undefined, got: Expected | undefined): PostgradError {
  const text = (what: Expected | undefined) => (what === undefined ? 'none' : `shape ${shapeText(what.shape)} and dtype ${what.dtype}`)
  return new PostgradError('CHECKPOINT_MISMATCH', {
    op: 'checkpoint',
    expected: `saved tensor ${index} to be again ${text(expected)}`,
    got: text(got),
    remedy: 'Let the function compute the same both times: no state, no random numbers from a generator of its own.',
  })
}
