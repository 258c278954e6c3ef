/**
 * The steps of a training that are left: `Checkpoints.steps`. It loads the newest checkpoint if there is one, gives the numbers of the steps that are left, and saves between them.
 *
 * Note [Kept objects]
 * `load` returns plain data, since nobody could write a new value into a variable of the program. Here the program passes an object or an array of its own, and a load replaces the contents:
 * the program's variable then holds what was saved. So a bare number has no place here, and is refused; so is an object that a load cannot fill with the plain data of a checkpoint, such as a Map or a
 * frozen object. A checkpoint that lacks one of these objects, or has something else under its name, is another program's: the load refuses it before anything is changed.
 */
import { isPostgradError } from '@postgrad/base'
import { Module } from '@postgrad/nn'
import { type CallOptions, RRef } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { isTensor } from '@postgrad/tensor'
import { argumentText, checkOptions, invalidArgument } from '@postgrad/tensor/internal'
import { DistributedOptimizer } from '../distributed-optimizer.js'
import { isStateful } from './entry.js'
import { mismatch } from './errors.js'
import type { CheckpointParts } from './parts.js'

type Limits = Pick<CallOptions, 'timeoutMs' | 'signal'>

/** Options of `Checkpoints.steps`. `timeoutMs` and `signal` are limits of each save and load. */
export interface CheckpointStepsOptions extends Limits {
  /** The last step. */
  readonly until: number
  /** Save after each step whose number is a multiple of this one, and after the last. */
  readonly every: number
}

type Values = Readonly<Record<string, unknown>>

/** The two calls of `Checkpoints` that it needs. */
export interface SavesAndLoads {
  save(step: number, parts: CheckpointParts, options: Limits): Promise<unknown>
  /** @param check throws if the load may not change anything, for these values of the checkpoint */
  load(
    parts: CheckpointParts,
    options: Limits,
    check: (values: Values) => void,
  ): Promise<{ readonly step: number; readonly values: Values }>
}

const OP = 'Checkpoints.steps'

/** @throws INVALID_ARGUMENT */
export function trainingSteps(
  checkpoints: SavesAndLoads,
  parts: CheckpointParts,
  given: CheckpointStepsOptions,
): AsyncGenerator<number, void, undefined> {
  checkOptions(OP, given, ['until', 'every', 'timeoutMs', 'signal'])
  const { until, every, ...options } = given
  checkInteger('until', until, 0)
  checkInteger('every', every, 1)
  return steps(checkpoints, parts, keptOf(parts), { until, every }, options)
}

async function* steps(
  checkpoints: SavesAndLoads,
  parts: CheckpointParts,
  kept: ReadonlyMap<string, object>,
  { until, every }: { readonly until: number; readonly every: number },
  options: Limits,
): AsyncGenerator<number, void, undefined> {
  const loaded = await checkpoints
    .load(parts, options, (values) => checkKept(kept, values))
    .catch((error: unknown) => {
      if (isPostgradError(error, 'CHECKPOINT_NOT_FOUND')) return null
      throw error
    })
  if (loaded !== null) for (const [name, object] of kept) refill(object, loaded.values[name])
  for (let step = (loaded?.step ?? 0) + 1; step <= until; step++) {
    yield step
    if (step % every === 0 || step === until) await checkpoints.save(step, parts, options)
  }
}

/** The plain data among the parts. @throws INVALID_ARGUMENT for a value that a load could not write into */
function keptOf(parts: CheckpointParts): Map<string, object> {
  // Another mistake in the parts is for `load` to refuse.
  const entries = typeof parts === 'object' && parts !== null ? Object.entries(parts) : []
  const plain = entries.filter(([, value]) => value !== undefined && !isLoadedItself(value))
  for (const [name, value] of plain) {
    const kind = kindOf(value)
    if (kind !== null && isRefillable(value as object)) continue
    const got = kind === null ? argumentText(value) : `${kind} that cannot be changed`
    throw invalidArgument(OP, `a plain object or an array as '${name}', which a load can fill again`, got, remedyFor(name, kind, value))
  }
  return new Map(plain as [string, object][])
}

function remedyFor(name: string, kind: string | null, value: unknown): string {
  if (kind !== null) return 'Pass one that is not frozen.'
  const isBare = typeof value !== 'object' || value === null || isTensor(value)
  return isBare
    ? `Put it into an object of the program: const kept = { ${name} }, and pass kept.`
    : 'Keep its data in a plain object or an array, or give its class stateDict and loadStateDict.'
}

/** Null for every other value. */
function kindOf(value: unknown): 'an array' | 'an object' | null {
  if (Array.isArray(value)) return 'an array'
  if (typeof value !== 'object' || value === null) return null
  const prototype: unknown = Object.getPrototypeOf(value)
  // Objects of another realm, such as a jest test, are plain, too.
  return prototype === null || Object.getPrototypeOf(prototype) === null ? 'an object' : null
}

function isRefillable(object: object): boolean {
  if (!Object.isExtensible(object)) return false
  const own = Object.entries(Object.getOwnPropertyDescriptors(object))
  return own.every(
    ([name, { configurable, writable }]) => configurable || (Array.isArray(object) && name === 'length' && writable === true),
  )
}

/** @throws CHECKPOINT_MISMATCH */
function checkKept(kept: ReadonlyMap<string, object>, values: Values): void {
  for (const [name, object] of kept) {
    const [now, saved] = [kindOf(object)!, Object.hasOwn(values, name) ? kindOf(values[name]) : null]
    if (saved === now) continue
    const got = saved ?? (Object.hasOwn(values, name) ? argumentText(values[name]) : 'none')
    throw mismatch(currentRuntime().info.name, `${now} '${name}' in the checkpoint`, got)
  }
}

function isLoadedItself(value: unknown): boolean {
  return value instanceof Module || value instanceof RRef || value instanceof DistributedOptimizer || isStateful(value)
}

function refill(object: object, saved: unknown): void {
  if (Array.isArray(object)) {
    object.length = 0
    for (const item of saved as readonly unknown[]) object.push(item)
    return
  }
  for (const name of Object.keys(object)) delete (object as Record<string, unknown>)[name]
  Object.defineProperties(object, Object.getOwnPropertyDescriptors(saved as object))
}

function checkInteger(name: string, x: unknown, least: number): void {
  if (Number.isSafeInteger(x) && (x as number) >= least) return
  throw invalidArgument(OP, `an integer from ${least} as ${name}`, argumentText(x), 'Write { until: 1000, every: 100 }.')
}
