/** Which messages may overtake which: links keep the order that the mailbox keeps. */
import { describe, expect, test } from '@jest/globals'
import { Lane } from '@postgrad/base/internal'
import { EVERY_ORDER, NO_ORDER, staysBehind } from '@postgrad/transport/internal'
import { MESSAGE_TABLE, MessageType, OutgoingMessage } from '@postgrad/wire/internal'
import { METHOD_CALL } from '../common/built-in-names.js'
import { orderOf } from './message-order.js'

const { CALL, RESULT, EXCEPTION, REMOTE_CALL, RREF_FETCH, RREF_USER_DELETE, CALL_CANCEL, PROGRESS, GROUP_UPDATE, COLLECTIVE } = MessageType
const { STREAM_ITEM, PROPAGATE_GRADIENTS, CLEANUP_CONTEXT, UNREADABLE, PASS_REPORT } = MessageType
const SMALL = new Uint8Array(100)
const LARGE = new Uint8Array(100_000)

const orderIn = (
  type: MessageType,
  body: readonly unknown[] = [],
  more: Partial<OutgoingMessage> = {},
  ...segments: Uint8Array[]
): number => orderOf(Object.assign(new OutgoingMessage(type, body), more), { header: new Uint8Array(10), segments })

/** Whether the second arrives after the first, whatever is under way. */
const keeps = (first: number, then: number): boolean => staysBehind(then, first)

describe('the order of messages on their way', () => {
  test('ORD-2 messages of one lane keep their order, and all stay behind control messages', () => {
    const { control, gradient, call } = Lane
    const free = { [control]: orderIn(PROGRESS), [gradient]: orderIn(COLLECTIVE), [call]: orderIn(CALL, ['f', []]) }
    for (const one of [control, gradient, call])
      for (const other of [control, gradient, call]) {
        // A message of a higher lane goes past those of deeper ones; a call goes past gradients too.
        expect([one, other, keeps(free[one], free[other])]).toEqual([one, other, one === other || one === control])
      }
    for (const [type, { lane }] of Object.entries(MESSAGE_TABLE)) {
      if (lane === Lane.signal) continue
      const order = orderIn(Number(type) as MessageType, [1n, 1n, 1n, 1n])
      expect([type, keeps(order, free[lane as keyof typeof free])]).toEqual([type, true])
    }
  })

  test('ORD-2 messages about one context, or one reference, keep their order in whatever lanes, under both ids', () => {
    const context = 7n
    const messages = [
      orderIn(CALL, ['f', []], { context }),
      orderIn(PROPAGATE_GRADIENTS, [], { context }),
      orderIn(CLEANUP_CONTEXT, [], { context }),
    ]
    for (const one of messages)
      for (const other of [...messages, orderIn(PASS_REPORT, [], { context })]) expect(keeps(one, other)).toBe(true)
    const made = orderIn(REMOTE_CALL, ['f', [], 5n, 6n])
    const method = orderIn(CALL, [METHOD_CALL, [5n, 'step', []]])
    for (const order of [orderIn(RREF_FETCH, [5n]), orderIn(RREF_FETCH, [5n], { context }), orderIn(RREF_USER_DELETE, [5n, 6n])]) {
      expect([keeps(made, order), keeps(method, order)]).toEqual([true, true])
    }
    // Of another context, and of another value.
    expect(keeps(messages[0]!, orderIn(CLEANUP_CONTEXT, [], { context: 8n }))).toBe(false)
    expect(keeps(method, orderIn(RREF_FETCH, [6n]))).toBe(false)
  })

  test('ORD-3 a large result is in nobody’s way; one of a context, or with references, is', () => {
    expect(orderIn(RESULT, [1], {}, LARGE)).toBe(NO_ORDER)
    for (const order of [orderIn(RESULT, [1]), orderIn(RESULT, [1], {}, SMALL), orderIn(EXCEPTION, [1])])
      expect(order).toBe(orderIn(PROGRESS))
    expect(keeps(orderIn(RESULT, [1], { context: 7n }, LARGE), orderIn(CLEANUP_CONTEXT, [], { context: 7n }))).toBe(true)
    expect(orderIn(RESULT, [1], { note: [] }, LARGE)).toBe(EVERY_ORDER)
    // An item of a stream: later ones and the end come after it.
    expect(keeps(orderIn(STREAM_ITEM, [1], {}, LARGE), orderIn(RESULT, [1]))).toBe(true)
  })

  test('ORD-3 calls stay behind calls, and so does what is about a call; replies do not', () => {
    const call = orderIn(CALL, ['f', []], {}, LARGE)
    expect(keeps(call, orderIn(CALL, ['g', []]))).toBe(true)
    expect(keeps(call, orderIn(CALL_CANCEL, [1, false]))).toBe(true)
    expect(keeps(call, orderIn(RESULT, [1]))).toBe(false)
    expect(keeps(call, orderIn(PROGRESS, [0, 0, 0, 0, 0, []]))).toBe(false)
    // Credit for calls that have begun comes before their replies: who awaits each call has room for the next.
    expect(keeps(orderIn(PROGRESS), orderIn(RESULT, [1]))).toBe(true)
  })

  test('ORD-5 a small call that need not be ordered stays behind no calls, but behind what is about the same context; a large one does', () => {
    const isUnordered = true
    const call = orderIn(CALL, ['f', []], {}, LARGE)
    const unordered = orderIn(CALL, ['g', []], { isUnordered })
    expect([keeps(call, unordered), keeps(unordered, call), keeps(orderIn(PROGRESS), unordered)]).toEqual([false, false, true])
    expect(keeps(call, orderIn(CALL, ['g', []], { isUnordered }, LARGE))).toBe(true)
    const context = 7n
    expect(keeps(orderIn(CALL, ['f', []], { context }, LARGE), orderIn(CALL, ['g', []], { context, isUnordered }))).toBe(true)
    expect(orderIn(CALL, ['g', []], { note: [], isUnordered })).toBe(EVERY_ORDER)
  })

  test('ORD-3 what carries references, ends a group or tells of what was unreadable overtakes nothing; nor does what is no message', () => {
    for (const order of [orderIn(CALL, ['f', []], { note: [] }), orderIn(GROUP_UPDATE, [0, null, null]), orderIn(UNREADABLE, [1])])
      expect(order).toBe(EVERY_ORDER)
    expect(orderIn(RREF_FETCH, ['no id'])).toBe(EVERY_ORDER)
  })
})
