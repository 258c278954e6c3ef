/**
 * The messages between ranks of a group. All are of one kind, COLLECTIVE, whose body is
 *
 *     [group, what, sequence, step, head, values, error]
 *
 *     PART     the values of one step of one collective, for the receiver. `sequence`: the how many-th of the group it is; `head`: what its sender calls
 *     SEND     a tensor of `send`. `sequence`: its tag; `head`: what it is
 *     TAKEN    so many tensors of the receiver's `send`s were taken, ever: `sequence`; so many bytes of them: `step`
 *     FAILED   the sender's collectives from `sequence` on have failed with `error`, and it begins no more
 *     LEFT     the sender has destroyed the group
 *     UNKNOWN  the sender knows no such group
 *
 * Messages of one sender keep their order. If all ranks call the same, a rank sends only parts that its receiver waits for, now or later. So any other
 * part is a mismatch (Note [Heads] in `group/collective.ts`).
 */
import { giveBack, isTensor } from '@postgrad/tensor/internal'
import type { MessageBodies, MessageType } from '@postgrad/wire/internal'

/** The messages of a group. */
export const What = { part: 0, send: 1, failed: 2, left: 3, unknown: 4, taken: 5 } as const
export type What = (typeof What)[keyof typeof What]

/** As `wire` checks it. */
export type Body = MessageBodies[typeof MessageType.COLLECTIVE]

/** From one rank to another in one step. */
export type Values = readonly unknown[]

export const NOTHING: Values = Object.freeze([])

/** Gives back the blocks of tensors that have come and are used no more: now, not when they are collected. */
export function dropValues(values: Values): void {
  for (const value of values) if (isTensor(value) && !value.isSparse) giveBack(value.storage)
}
