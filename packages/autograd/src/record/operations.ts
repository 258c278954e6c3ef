/**
 * Makes recorded operations of tensor's entries: the form of an entry's row chooses the recorder (`record.ts`, `record-many.ts`, `in-place.ts`). `install.ts` imports it
 * for this effect. Later entries are made the same way.
 */
import type { Tensor } from '@postgrad/tensor'
import { type AnyRow, type Entry, installRecorder, type Operation } from '@postgrad/tensor/internal'
import { operations } from '../graph/recorded.js'
import { inPlace } from './in-place.js'
import { recordAttributed, recordBinary, recordList, recordLookup, recordUnary, recordWhere } from './record.js'
import { recordMany } from './record-many.js'

function recordedOf({ how, name, raw, slots }: Entry): Operation {
  if (how.kind === 'composite') return named(name, how.of(operations))
  if (how.kind === 'in place') return inPlace(name, raw, () => how.value(operations), !how.isBlind)
  const { row, node } = how
  if (row === null) return raw
  return named(node, recordedBy(row, node, raw, slots?.length))
}

function recordedBy(row: AnyRow, node: string, raw: Operation, count: number | undefined): Operation {
  if ('grads' in row) return recordMany(node, raw, row)
  if ('x' in row) return recordLookup(node, raw, row)
  if ('each' in row) return recordList(node, raw, row)
  if ('a' in row) return count === 3 ? recordWhere(node, raw, row) : recordBinary(node, raw, row)
  return count === 1 ? recordUnary(node, raw as (x: Tensor) => Tensor, row) : recordAttributed(node, raw, row)
}

/** Functions are called by name over the wire and shown in stacks, so they carry the operation's. */
function named(name: string, fn: Operation): Operation {
  return Object.defineProperty(fn, 'name', { value: name })
}

installRecorder((entry) => {
  const recorded = recordedOf(entry)
  ;(operations as unknown as Record<string, Operation>)[entry.name] = recorded
  return recorded
})
