/**
 * The lineage field of an envelope, in the one layout that all workers share. `attach.ts` writes and reads it; wire only checks that it is
 * an array of integers ≥ 0. Nodes and their names: `lineage.ts`.
 *
 *     null                                    no send function, in a SMART context (or in none)
 *     []                                      no send function, in a FAST one
 *     [depth]                                 a message with a SendRpcBackward, in a FAST one: the depth of that node
 *     [depth, number, node…]                  the same in a SMART one: the message's number at its sender, its own node, and those that its receiver lacks
 *
 *       the message's own node                d, (worker, code) × d              how many dependencies, their names
 *       each other node                       worker, code, d, (worker, code) × d
 *
 * Nodes that are too many for one message, for a worker that joins late, go ahead of it in messages of their own (LINEAGE), which hold nodes and nothing else.
 */
import { PostgradError, type WorkerId } from '@postgrad/base'
import { WORKER_ID_MAX } from '@postgrad/base/internal'
import type { Lineage, LineageNode } from './lineage.js'

type Field = readonly number[] | null

const NO_NODES: readonly LineageNode[] = Object.freeze([])
const NONE: readonly never[] = Object.freeze([])

/** No worker has sent so many messages; with the worker's id a code fits a number. */
const CODE_MAX = 2 ** 36

/** How many numbers one message may carry: some 1.2 MB, where wire allows a header of 8 MiB with a million items. */
export const FIELD_LENGTH_MAX = 2 ** 17

/** The lineage in a message. */
export interface Told {
  readonly field: number[]
  /** Goes before it, in messages of type LINEAGE. */
  readonly ahead: readonly (readonly number[])[]
}

/** Of every message of a FAST context without a send function. */
export const FAST_FIELD: readonly number[] = Object.freeze([])

/** Whether a message belongs to a FAST context. */
export function isFast(field: Field): boolean {
  return field !== null && field.length < 2
}

/** @throws LINEAGE_MALFORMED */
export function depthOf(field: Field): number {
  const depth = field?.[0]
  if (depth === undefined) throw malformed('it has no depth')
  return depth
}

/** @throws LINEAGE_MALFORMED */
export function numberOf(field: Field): number {
  const number = field?.[1]
  if (number === undefined) throw malformed('it has no number')
  return number
}

/** Of a message of this worker, for a receiver, which from now on counts as knowing these nodes. */
export function writeLineage(lineage: Lineage, message: LineageNode, depth: number, receiver: WorkerId): Told {
  const field = [depth, message.code / 2]
  // This worker itself lacks nothing.
  if (receiver === lineage.self) return { field: field.concat(0), ahead: NONE }
  const deps = message.deps!
  pushNames(field, deps)
  const nodes = lineage.lackedBy(receiver, deps)
  let length = field.length
  for (const node of nodes) length += lengthOf(node)
  if (length > FIELD_LENGTH_MAX) return { field, ahead: parts(nodes) }
  for (const node of nodes) pushNode(field, node)
  return { field, ahead: NONE }
}

/** All of them go ahead: a receiver of one part gets all, so its knowledge stays closed, whatever becomes of the message. */
function parts(nodes: readonly LineageNode[]): number[][] {
  const all: number[][] = [[]]
  let part = all[0]!
  for (const node of nodes) {
    if (part.length > 0 && part.length + lengthOf(node) > FIELD_LENGTH_MAX) {
      part = []
      all.push(part)
    }
    pushNode(part, node)
  }
  return all
}

function lengthOf({ deps }: LineageNode): number {
  return 3 + 2 * deps!.length
}

function pushNode(field: number[], { worker, code, deps }: LineageNode): void {
  field.push(worker, code)
  pushNames(field, deps!)
}

function pushNames(field: number[], nodes: readonly LineageNode[]): void {
  field.push(nodes.length)
  for (const { worker, code } of nodes) field.push(worker, code)
}

/** Notes the nodes in a message of `sender`. If it is malformed, its own node stays unknown. */
export function readLineage(lineage: Lineage, field: readonly number[], sender: WorkerId): void {
  if (sender === lineage.self) return
  const deps = readNames(lineage, field, 2, sender)
  if (deps === null || !isName(sender, 2 * field[1]!) || !readNodes(lineage, field, 3 + 2 * deps.length, sender)) return
  lineage.mention(sender, 2 * field[1]!).deps ??= deps
}

/** Notes the nodes from `start` on, as far as they can be read; false where that is not to the end. */
export function readNodes(lineage: Lineage, field: readonly number[], start: number, sender: WorkerId): boolean {
  for (let at = start; at < field.length; ) {
    const worker = field[at]!
    const code = field[at + 1]
    const behind = code === undefined ? null : readNames(lineage, field, at + 2, sender)
    if (code === undefined || behind === null || !isName(worker, code)) return false
    at += 3 + 2 * behind.length
    // This worker knows its own nodes best.
    if (worker === lineage.self) continue
    const node = lineage.mention(worker, code)
    node.deps ??= behind
    lineage.heardFrom(sender, node)
  }
  return true
}

/** The nodes whose count is at `at`, which their sender takes for known, or sends too; null if these are not nodes. */
function readNames(lineage: Lineage, field: readonly number[], at: number, sender: WorkerId): readonly LineageNode[] | null {
  const count = field[at]
  if (count === undefined || 2 * count > field.length - at - 1) return null
  if (count === 0) return NO_NODES
  const nodes: LineageNode[] = []
  for (let i = 0; i < count; i++) {
    const worker = field[at + 1 + 2 * i]!
    const code = field[at + 2 + 2 * i]!
    if (!isName(worker, code)) return null
    const node = worker === lineage.self ? lineage.find(worker, code) : lineage.mention(worker, code)
    if (node === undefined) return null
    nodes.push(node)
    lineage.heardFrom(sender, node)
  }
  return nodes
}

function isName(worker: number, code: number): boolean {
  return worker <= WORKER_ID_MAX && code <= CODE_MAX
}

/** A written message has not left. */
export function unwriteLineage(lineage: Lineage, field: readonly number[], receiver: WorkerId): void {
  lineage.sends[numberOf(field)] = null
  const untold: LineageNode[] = []
  for (let at = 3 + 2 * field[2]!; at < field.length; at += 3 + 2 * field[at + 2]!) untold.push(lineage.find(field[at]!, field[at + 1]!)!)
  lineage.untold(receiver, untold)
}

/** No worker of this version writes it. */
export function malformed(why: string): PostgradError {
  return new PostgradError('LINEAGE_MALFORMED', {
    op: 'receive',
    message: `the lineage of a message cannot be read: ${why}`,
    remedy: 'Run the same version on every worker; otherwise report this as a bug.',
    values: { why },
  })
}
