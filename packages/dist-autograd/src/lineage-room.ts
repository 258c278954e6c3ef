/**
 * What lies in the lineage room of an envelope, in the one layout that all workers share. `attach.ts` writes and reads it, wire only sees that it is
 * an array of integers ≥ 0. Nodes and their names: `lineage.ts`.
 *
 *     null                                    no send function, in a SMART context (or in none)
 *     []                                      no send function, in a FAST one
 *     [depth]                                 a message with a SendRpcBackward, in a FAST one: the depth of that node
 *     [depth, number, node…]                  the same in a SMART one: the message's number at its sender, its own node, and those that its receiver lacks
 *
 *       the message's own node                d, (worker, code) × d              how many dependencies, their names
 *       each other node                       worker, code, d, (worker, code) × d
 */
import { PostgradError, type WorkerId } from '@postgrad/base'
import { WORKER_ID_MAX } from '@postgrad/base/internal'
import type { Lineage, LineageNode } from './lineage.js'

type Room = readonly number[] | null

const NO_NODES: readonly LineageNode[] = Object.freeze([])

/** No worker has sent so many messages; with the worker's id a code fits a number. */
const CODE_MAX = 2 ** 36

/** Of every message of a FAST context without a send function. */
export const FAST_ROOM: readonly number[] = Object.freeze([])

/** Whether a message belongs to a FAST context. */
export function isFast(room: Room): boolean {
  return room !== null && room.length < 2
}

/** @throws LINEAGE_MALFORMED */
export function depthOf(room: Room): number {
  const depth = room?.[0]
  if (depth === undefined) throw malformed('it has no depth')
  return depth
}

/** @throws LINEAGE_MALFORMED */
export function numberOf(room: Room): number {
  const number = room?.[1]
  if (number === undefined) throw malformed('it has no number')
  return number
}

/** Of a message of this worker, for a receiver, which is taken to know from now on what it is told here. */
export function writeLineage(lineage: Lineage, message: LineageNode, depth: number, receiver: WorkerId): number[] {
  const room = [depth, message.code / 2]
  // This worker itself lacks nothing.
  if (receiver === lineage.self) return room.concat(0)
  const deps = message.deps!
  pushNames(room, deps)
  for (const node of lineage.lackedBy(receiver, deps)) {
    room.push(node.worker, node.code)
    pushNames(room, node.deps!)
  }
  return room
}

function pushNames(room: number[], nodes: readonly LineageNode[]): void {
  room.push(nodes.length)
  for (const { worker, code } of nodes) room.push(worker, code)
}

/** Notes what a message of `sender` tells. Of one that is malformed its own node stays unknown. */
export function readLineage(lineage: Lineage, room: readonly number[], sender: WorkerId): void {
  if (sender === lineage.self) return
  const deps = readNames(lineage, room, 2, sender)
  if (deps === null || !isName(sender, 2 * room[1]!)) return
  for (let at = 3 + 2 * deps.length; at < room.length; ) {
    const worker = room[at]!
    const code = room[at + 1]
    const behind = code === undefined ? null : readNames(lineage, room, at + 2, sender)
    if (code === undefined || behind === null || !isName(worker, code)) return
    at += 3 + 2 * behind.length
    // What this worker has of its own it knows best.
    if (worker === lineage.self) continue
    const node = lineage.mention(worker, code)
    node.deps ??= behind
    lineage.heardFrom(sender, node)
  }
  lineage.mention(sender, 2 * room[1]!).deps ??= deps
}

/** The nodes whose count stands at `at`, which their sender takes for known, or tells as well; null if they are none. */
function readNames(lineage: Lineage, room: readonly number[], at: number, sender: WorkerId): readonly LineageNode[] | null {
  const count = room[at]
  if (count === undefined || 2 * count > room.length - at - 1) return null
  if (count === 0) return NO_NODES
  const nodes: LineageNode[] = []
  for (let i = 0; i < count; i++) {
    const worker = room[at + 1 + 2 * i]!
    const code = room[at + 2 + 2 * i]!
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

/** What `writeLineage` wrote has not left. */
export function unwriteLineage(lineage: Lineage, room: readonly number[], receiver: WorkerId): void {
  lineage.sends[numberOf(room)] = null
  const untold: LineageNode[] = []
  for (let at = 3 + 2 * room[2]!; at < room.length; at += 3 + 2 * room[at + 2]!) untold.push(lineage.find(room[at]!, room[at + 1]!)!)
  lineage.untold(receiver, untold)
}

/** For what no worker of this version writes. */
export function malformed(why: string): PostgradError {
  return new PostgradError('LINEAGE_MALFORMED', {
    op: 'receive',
    message: `the lineage of a message cannot be read: ${why}`,
    remedy: 'Run the same version on every worker; otherwise report this as a bug.',
    values: { why },
  })
}
