/**
 * Anomaly mode finds the line of forward that a bad backward belongs to. Nodes note where they are made; when one throws or returns NaN, the error
 * names it and that line. Without the mode a node pays for one comparison. PyTorch: `torch.autograd.detect_anomaly`.
 */
import { PostgradError } from '@postgrad/base'
import { currentScope, framesOnStack, isOwnFrame, placeOfFrame, withScope } from '@postgrad/base/internal'
import type { SparseTensor } from '@postgrad/tensor'
import { checkFunction, isFloating, isReadable, raw, reportIf, type Storage } from '@postgrad/tensor/internal'
import { placed, placeOf } from './failure-place.js'
import type { Grads } from './hooks.js'

/** Options of `withAnomalyDetection`. */
export interface AnomalyOptions {
  /** Whether NaN in a gradient is an error, too; default true. */
  readonly checkNaN?: boolean
}

/** A node, as this file sees it: `node.ts` imports this file. */
interface Traced {
  readonly name: string
  apply(grads: Grads, task: object): Grads
}

/** Where a node was made: the frames of the user's code, and the node in whose backward it was (under createGraph). */
interface Origin {
  readonly frames: readonly string[]
  readonly within: Traced | null
}

/**
 * Whether this thread has ever run code in the mode: until then nodes spare the look at their scope, which is what decides, and which would cost 3 % of a small
 * operation. It is never set back: that would gain nothing but time, and nobody says when the last node of a call is made.
 */
export let anomalySeen = false
const origins = new WeakMap<Traced, Origin>()
const writes = new WeakMap<Storage, { readonly version: number; readonly line: string }>()
/** The node that runs right now. Running one is synchronous, so nothing of another worker or scope ever sees it. */
let running: Traced | null = null

/**
 * Runs `fn` in anomaly mode, and returns its result; also if `fn` is async, to its end. It finds the operation in forward whose backward fails. Run forward
 * inside; backward passes through nodes that were made inside are watched wherever they run. It is slow, and meant for finding errors.
 *
 * If a gradient has NaN, the pass fails with BACKWARD_NAN. If a node throws, the pass fails with that error, with BACKWARD_FAILED as the last of its causes.
 * Both errors name the node, and have the line of forward in `values.forward` and the frames below it in `values.frames`. PyTorch:
 * `torch.autograd.detect_anomaly`.
 * @example
 * const x = tensor([-1], { requiresGrad: true })
 * withAnomalyDetection(() => x.sqrt().sum().backward()) // fails with BACKWARD_NAN: SqrtBackward, from this line
 */
export function withAnomalyDetection<T>(fn: () => T, { checkNaN = true }: AnomalyOptions = {}): T {
  checkFunction('withAnomalyDetection', 'the code to watch', fn)
  watchScopes()
  return withScope({ anomaly: checkNaN ? 'nan' : 'throw' }, fn)
}

/** To be called before a scope with the mode is entered. */
export function watchScopes(): void {
  anomalySeen = true
}

const isOn = (): boolean => anomalySeen && currentScope().anomaly !== null

/** Notes where `node` is made, if anybody wants to know. Called by every node's constructor once the mode was seen. */
export function noteOrigin(node: Traced): void {
  if (isOn()) origins.set(node, { frames: userFrames(), within: running })
}

/** Notes where a storage is written to. Called by every in-place operation after its write. */
export function noteWrite(storage: Storage): void {
  if (isOn()) writes.set(storage, { version: storage.version, line: userFrames()[0] ?? 'an unknown line' })
}

/** ` at file:line:column`, if the storage's last write was noted; else nothing. */
export function writtenAt(storage: Storage): string {
  const write = writes.get(storage)
  return write?.version === storage.version ? ` at ${write.line}` : ''
}

/** Whether `applyWatched` replaces `node.apply`: in the mode, and for nodes that were made in it. Ask only once the mode was seen. */
export function isWatched(node: Traced): boolean {
  return origins.has(node) || currentScope().anomaly !== null
}

/** `node.apply`, with what anomaly mode adds. */
export function applyWatched(node: Traced, grads: Grads, task: object): Grads {
  const origin = origins.get(node) ?? null
  const before = running
  running = node
  try {
    const results = node.apply(grads, task)
    if (currentScope().anomaly !== 'throw') checkNaN(node, results, origin)
    return results
  } catch (error) {
    throw explained(error, node, origin)
  } finally {
    running = before
  }
}

/** @throws BACKWARD_NAN; on a device with a memory of its own the next read there rejects with it */
function checkNaN(node: Traced, results: Grads, origin: Origin | null): void {
  for (const [index, grad] of results.entries()) {
    if (grad === null || grad === undefined || !isFloating(grad.dtype)) continue
    const values = grad.isSparse ? (grad as SparseTensor).values() : grad
    if (values.numel === 0) continue
    if (!isReadable(values)) reportIf(raw.amax(raw.ne(values, values)), foundNaN(node, index, origin))
    else if ((values.dataSync() as Float64Array).some(Number.isNaN)) throw foundNaN(node, index, origin)
  }
}

function foundNaN(node: Traced, index: number, origin: Origin | null): PostgradError {
  return new PostgradError('BACKWARD_NAN', {
    op: node.name,
    message: `gradient ${index} has NaN; ${originText(origin)}`,
    remedy: 'Look there for 0 / 0, the root or logarithm of 0, or NaN in its inputs.',
    values: { node: node.name, index, ...originValues(origin) },
  })
}

/** The error with the node and the line of forward, unless it has the place of another node already. */
function explained(error: unknown, node: Traced, origin: Origin | null): unknown {
  if (placeOf(error) !== null) return error
  const place = (cause?: unknown): PostgradError =>
    new PostgradError('BACKWARD_FAILED', {
      op: node.name,
      message: `its backward failed; ${originText(origin)}`,
      values: { node: node.name, ...originValues(origin) },
      ...(cause === undefined ? {} : { cause }),
    })
  return placed(error, place)
}

function originText(origin: Origin | null): string {
  if (origin === null) return 'it was recorded outside of withAnomalyDetection'
  const { frames, within } = origin
  const outer = within === null ? '' : `, in the backward of ${within.name}: ${originText(origins.get(within) ?? null)}`
  return `it was recorded at ${frames[0] ?? 'an unknown line'}${outer}`
}

function originValues(origin: Origin | null): { readonly forward: string | null; readonly frames: readonly string[] } {
  return { forward: origin?.frames[0] ?? null, frames: origin?.frames ?? [] }
}

/** `file:line:column` of each frame of the program, the innermost first. */
function userFrames(): string[] {
  return framesOnStack()
    .filter((line) => !isOwnFrame(line))
    .map(placeOfFrame)
    .filter((place) => place !== '')
}
