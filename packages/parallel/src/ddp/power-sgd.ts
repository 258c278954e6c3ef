/**
 * PowerSGD: reduces, instead of a gradient, two thin matrices whose product is close to it, and adds the error to the next gradient. For models whose
 * gradients are large for the links between ranks. PyTorch: `powerSGD_hook`.
 *
 *     M [n, m]  ≈  P [n, r] · Qᵀ [r, m]      P = mean(M Q), made orthonormal; Q = mean(Mᵀ P)
 *
 * Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization", 2019.
 */

import { PostgradError } from '@postgrad/base'
import { isPlain } from '@postgrad/nn/internal'
import { allReduceCoalesced, type ProcessGroup } from '@postgrad/process-group'
import { Generator, randn, type Tensor } from '@postgrad/tensor'
import {
  argumentText,
  checkOptions,
  copyOfElements,
  invalidArgument,
  isTensor,
  raw,
  sameShape,
  shapeText,
  writeElements,
} from '@postgrad/tensor/internal'
import { meanOf } from './comm-hooks.js'
import type { GradBucket } from './grad-bucket.js'
import { groupOf } from './replica.js'

/** Options of `PowerSGDState`. */
export interface PowerSGDStateOptions {
  /** The ranks that reduce gradients; default the default group. */
  readonly processGroup?: ProcessGroup
  /** The number of columns of the two thin matrices; default 1. */
  readonly matrixApproximationRank?: number
  /** For how many iterations at the start whole gradients are reduced; default 1000. At least 2 with `useErrorFeedback` or `warmStart`. */
  readonly startPowerSGDIter?: number
  /** How many times smaller compression must make a gradient, else the gradient is not compressed; default 2. */
  readonly minCompressionRate?: number
  /** Whether the error of the compression is added to the next gradient; default true. */
  readonly useErrorFeedback?: boolean
  /** Whether each iteration begins with the matrix Q of the previous one; default true. */
  readonly warmStart?: boolean
  /** The seed of the first Q, the same on all ranks; default 0. */
  readonly randomSeed?: number
}

const SETTINGS = [
  'matrixApproximationRank',
  'startPowerSGDIter',
  'minCompressionRate',
  'useErrorFeedback',
  'warmStart',
  'randomSeed',
] as const satisfies readonly (keyof PowerSGDStateOptions)[]
const OPTIONS = ['processGroup', ...SETTINGS] as const

/** The state dict of a `PowerSGDState`: plain data and tensors. It differs between ranks. PyTorch: the result of `__getstate__`. */
export interface PowerSGDStateDict {
  /** The number of iterations that have ended. */
  readonly iteration: number
  /** All options except `processGroup`. */
  readonly settings: Readonly<Omit<Required<PowerSGDStateOptions>, 'processGroup'>>
  /** The errors of this rank's last iteration, by the number of each compressed parameter, in the shape of that parameter. */
  readonly errors: Readonly<Record<string, Tensor>>
  /** The last matrix Q of each compressed parameter, [m, r], by its number. It is the same on all ranks. */
  readonly qs: Readonly<Record<string, Tensor>>
}

/**
 * The state that `powerSGDHook` keeps between iterations. PyTorch: `PowerSGDState`.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * const state = new PowerSGDState({ matrixApproximationRank: 2, startPowerSGDIter: 1000 })
 * model.registerCommHook(state, powerSGDHook)
 * await model.backward((await model.forward(x)).sum())
 * state.iteration // 1
 */
export class PowerSGDState {
  /** How many iterations have ended. */
  iteration = 0
  /** @internal */
  options: Required<PowerSGDStateOptions>
  /** @internal By the numbers of the parameters, as the next: buckets are made again, after a restart, too. */
  errors = new Map<number, Tensor>()
  /** @internal */
  qs = new Map<number, Tensor>()

  /** @throws INVALID_ARGUMENT, PROCESS_GROUP_NOT_INITIALIZED */
  constructor(options: PowerSGDStateOptions = {}) {
    checkOptions('PowerSGDState', options, OPTIONS)
    const { matrixApproximationRank = 1, startPowerSGDIter = 1000, minCompressionRate = 2 } = options
    const { useErrorFeedback = true, warmStart = true, randomSeed = 0 } = options
    const settings = { matrixApproximationRank, startPowerSGDIter, minCompressionRate, useErrorFeedback, warmStart, randomSeed }
    checkSettings(settings)
    this.options = { ...settings, processGroup: groupOf('PowerSGDState', options.processGroup) }
  }

  /** A copy of the state. Later iterations do not change it. Each rank saves its own state, between two steps. */
  stateDict(): PowerSGDStateDict {
    const { processGroup: _, ...settings } = this.options
    const copies = (tensors: ReadonlyMap<number, Tensor>) => Object.fromEntries([...tensors].map(([number, t]) => [number, raw.clone(t)]))
    return { iteration: this.iteration, settings, errors: copies(this.errors), qs: copies(this.qs) }
  }

  /**
   * Loads a state with its options; the group stays. If every rank loads its own state, a new model of the same module continues to train with the same bits.
   * If the state does not fit the model, the next backward pass fails with STATE_DICT_MISMATCH.
   * @throws STATE_DICT_MISMATCH or INVALID_ARGUMENT if `saved` is not such a state; nothing is changed then
   */
  loadStateDict(saved: PowerSGDStateDict): void {
    const { iteration, settings, errors, qs } = (saved ?? {}) as Partial<PowerSGDStateDict>
    if (!Number.isSafeInteger(iteration) || iteration! < 0 || !isPlain(settings) || !isPlain(errors) || !isPlain(qs)) {
      throw stateMismatch('loadStateDict', '{ iteration, settings, errors, qs }, as stateDict() gives', argumentText(saved))
    }
    checkOptions('PowerSGDState', settings, SETTINGS)
    const missing = SETTINGS.filter((name) => settings[name] === undefined)
    if (missing.length > 0)
      throw stateMismatch('loadStateDict', `the settings ${SETTINGS.join(', ')}`, `some without ${missing.join(', ')}`)
    checkSettings(settings)
    const [ownErrors, ownQs] = [tensorsByNumber(errors), tensorsByNumber(qs)]
    this.iteration = iteration!
    this.options = { ...settings, processGroup: this.options.processGroup }
    this.errors = ownErrors
    this.qs = ownQs
  }
}

/** @throws INVALID_ARGUMENT */
function checkSettings(settings: PowerSGDStateDict['settings']): void {
  const { matrixApproximationRank, startPowerSGDIter, minCompressionRate, useErrorFeedback, warmStart, randomSeed } = settings
  if (!Number.isSafeInteger(matrixApproximationRank) || matrixApproximationRank < 1) {
    throw invalidArgument('PowerSGDState', 'matrixApproximationRank to be an integer ≥ 1', argumentText(matrixApproximationRank))
  }
  for (const [name, value] of Object.entries({ useErrorFeedback, warmStart })) {
    if (typeof value !== 'boolean') throw invalidArgument('PowerSGDState', `true or false as ${name}`, argumentText(value))
  }
  if (!Number.isSafeInteger(startPowerSGDIter) || startPowerSGDIter < 0) {
    throw invalidArgument('PowerSGDState', 'startPowerSGDIter to be an integer ≥ 0', argumentText(startPowerSGDIter))
  }
  if (!(startPowerSGDIter > 1) && (useErrorFeedback || warmStart)) {
    throw invalidArgument(
      'PowerSGDState',
      'startPowerSGDIter > 1 with useErrorFeedback or warmStart',
      startPowerSGDIter,
      'The buckets are made again after the first iteration.',
    )
  }
  if (typeof minCompressionRate !== 'number' || !(minCompressionRate > 0)) {
    throw invalidArgument('PowerSGDState', 'a number above 0 as minCompressionRate', argumentText(minCompressionRate))
  }
  if (!Number.isSafeInteger(randomSeed)) throw invalidArgument('PowerSGDState', 'randomSeed to be an integer', argumentText(randomSeed))
}

/** Copies, as ours are written to. @throws STATE_DICT_MISMATCH */
function tensorsByNumber(saved: Readonly<Record<string, unknown>>): Map<number, Tensor> {
  return new Map(
    Object.entries(saved).map(([number, value]) => {
      if (isTensor(value) && /^\d+$/.test(number)) return [Number(number), raw.clone(value)]
      throw stateMismatch('loadStateDict', 'tensors by the numbers of parameters', `${argumentText(value)} as '${number}'`)
    }),
  )
}

function stateMismatch(op: string, expected: string, got: string): PostgradError {
  return new PostgradError('STATE_DICT_MISMATCH', {
    op: `PowerSGDState.${op}`,
    expected,
    got,
    remedy: 'Load what stateDict() gave on this rank, into the state of a DistributedDataParallel of the same module.',
  })
}

/**
 * Reduces each large gradient as a product of two thin matrices, which is close to the mean gradient. PyTorch: `powerSGD_hook`, which also keeps errors of
 * uncompressed gradients; they add up to 0 over the ranks.
 * @example
 * using model = await DistributedDataParallel.create(new Linear(2, 1))
 * model.registerCommHook(new PowerSGDState(), powerSGDHook)
 * await model.backward((await model.forward(x)).sum())
 */
export async function powerSGDHook(state: PowerSGDState, bucket: GradBucket): Promise<Tensor> {
  if (!(state instanceof PowerSGDState)) {
    const remedy = 'Write model.registerCommHook(new PowerSGDState(), powerSGDHook).'
    throw invalidArgument('powerSGDHook', 'a PowerSGDState as its state', argumentText(state), remedy)
  }
  if (bucket.isFirst) checkNumbers(state, bucket.parameterCount)
  const { processGroup: group, startPowerSGDIter, useErrorFeedback, warmStart, matrixApproximationRank, minCompressionRate } = state.options
  const { buffer, gradients, numbers } = bucket
  const { iteration } = state
  if (bucket.isLast) state.iteration++
  if (iteration < startPowerSGDIter) return meanOf(buffer, group)
  const whole: Tensor[] = []
  const matrices: { readonly number: number; readonly m: Tensor; readonly q: Tensor; readonly before: Tensor | null }[] = []
  for (const [i, grad] of gradients.entries()) {
    const [n, m] = [grad.shape[0] ?? 1, grad.numel / (grad.shape[0] ?? 1)]
    const rank = Math.min(n, m, matrixApproximationRank)
    if (grad.ndim < 2 || !((n + m) * rank * minCompressionRate < n * m)) {
      whole.push(grad)
      continue
    }
    const number = numbers[i]!
    const last = warmStart ? state.qs.get(number) : undefined
    const q = last ?? firstQ([m, rank], grad, state.options.randomSeed, iteration, number)
    if (!sameShape(q.shape, [m, rank]) || q.dtype !== grad.dtype) throw unfit('the Q', q, number, `${grad.dtype} ${shapeText([m, rank])}`)
    if (warmStart) state.qs.set(number, q)
    orthogonalize(q)
    if (useErrorFeedback) addError(state, number, grad)
    matrices.push({ number, m: raw.reshape(grad, [n, m]), q, before: useErrorFeedback ? raw.clone(grad) : null })
  }
  for (const each of whole) raw.mul_(each, 1 / group.size)
  if (whole.length > 0) await allReduceCoalesced(whole, { group })
  if (matrices.length === 0) return buffer
  const ps = matrices.map(({ m, q }) => raw.mul(raw.matmul(m, q), 1 / group.size))
  await allReduceCoalesced(ps, { group })
  for (const p of ps) orthogonalize(p)
  for (const [i, { m, q }] of matrices.entries()) raw.copy_(q, raw.mul(raw.matmul(raw.transpose(m, 0, 1), ps[i]!), 1 / group.size))
  await allReduceCoalesced(
    matrices.map(({ q }) => q),
    { group },
  )
  for (const [i, { m, q }] of matrices.entries()) raw.copy_(m, raw.matmul(ps[i]!, raw.transpose(q, 0, 1)))
  for (const { number, m, before } of matrices) if (before !== null) state.errors.set(number, raw.sub(before, raw.reshape(m, before.shape)))
  return buffer
}

/** @throws STATE_DICT_MISMATCH if it is of a model with more parameters: no other check sees those, and another model's are wrong */
function checkNumbers({ errors, qs }: PowerSGDState, parameterCount: number): void {
  for (const number of [...errors.keys(), ...qs.keys()]) {
    if (number >= parameterCount) throw stateMismatch('powerSGDHook', `numbers of ${parameterCount} parameters`, String(number))
  }
}

function addError({ errors }: PowerSGDState, number: number, grad: Tensor): void {
  const error = errors.get(number)
  if (error === undefined) return
  if (!sameShape(error.shape, grad.shape) || error.dtype !== grad.dtype)
    throw unfit('the error', error, number, `${grad.dtype} ${shapeText(grad.shape)}`)
  raw.add_(grad, error)
}

function unfit(what: string, got: Tensor, number: number, expected: string): PostgradError {
  return stateMismatch('powerSGDHook', `${what} of parameter ${number} to be ${expected}`, `${got.dtype} ${shapeText(got.shape)}`)
}

/** Standard normal, [m, r]; of its seed, iteration and parameter alone, in whatever order parameters come. */
function firstQ(shape: readonly number[], { dtype }: Tensor, randomSeed: number, iteration: number, number: number): Tensor {
  // The generator takes 32 bits; these are odd constants of hash functions.
  const seed = Math.imul(number + 1, 0x9e3779b1) ^ Math.imul(iteration + 1, 0x85ebca6b)
  return randn(shape, { dtype: dtype as 'float32', generator: new Generator(randomSeed ^ seed) })
}

/**
 * Makes the columns [n, r ≤ n] orthonormal, in place, by Householder's reflections I − 2 v vᵀ / |v|². They span the same space. A column that depends on those before it, which
 * leaves nothing or roundings, becomes another direction: P Pᵀ stays a projection, and with warm start the column adapts to later gradients. PyTorch: `torch.linalg.qr`.
 */
function orthogonalize(x: Tensor): void {
  const [n, r] = x.shape as readonly [number, number]
  const a = copyOfElements(x)
  const at = (row: number, column: number): number => row * r + column
  /** 2 / |v|² of each reflection; its v is column c from row c on. */
  const scales = new Float64Array(r)
  const reflect = (c: number): void => {
    for (let other = c + 1; other < r; other++) {
      let dot = 0
      for (let row = c; row < n; row++) dot += a[at(row, c)]! * a[at(row, other)]!
      dot *= scales[c]!
      for (let row = c; row < n; row++) a[at(row, other)]! -= dot * a[at(row, c)]!
    }
  }
  for (let c = 0; c < r; c++) {
    let square = 0
    for (let row = c; row < n; row++) square += a[at(row, c)]! ** 2
    const head = a[at(c, c)]!
    a[at(c, c)] = head + (head < 0 ? -1 : 1) * Math.sqrt(square)
    // By the stored value, which may be rounded. A column of 0, or nearly 0, is not reflected: its direction is that of a unit vector.
    scales[c] = square < 1e-300 ? 0 : 2 / (square - head ** 2 + a[at(c, c)]! ** 2)
    reflect(c)
  }
  // The reflections of the first r unit vectors, the last first.
  for (let c = r - 1; c >= 0; c--) {
    for (let other = c + 1; other < r; other++) a[at(c, other)] = 0
    reflect(c)
    const factor = scales[c]! * a[at(c, c)]!
    for (let row = 0; row < n; row++) a[at(row, c)] = (row === c ? 1 : 0) - (row < c ? 0 : factor * a[at(row, c)]!)
  }
  writeElements(x, a)
}
