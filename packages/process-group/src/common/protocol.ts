/**
 * What ranks of a group say to each other, readable alone. All of it is one kind of message, COLLECTIVE, whose body is
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
 * Messages of one sender keep their order. A rank sends nothing that its receiver does not wait for, now or later, if all call the same; so whatever is not
 * waited for is a mismatch (Note [Heads] in `group/collective.ts`).
 */
import { giveBack, isTensor } from '@postgrad/tensor/internal'
import type { MessageBodies, MessageType } from '@postgrad/wire/internal'

/** What a message of a group says. */
export const What = { part: 0, send: 1, failed: 2, left: 3, unknown: 4, taken: 5 } as const
export type What = (typeof What)[keyof typeof What]

/** As `wire` checks it. */
export type Body = MessageBodies[typeof MessageType.COLLECTIVE]

/** What one rank gives another in one step. */
export type Values = readonly unknown[]

export const NOTHING: Values = Object.freeze([])

/** Gives back the blocks of tensors that have come and are used no more: now, not when they are collected. */
export function dropValues(values: Values): void {
  for (const value of values) if (isTensor(value) && !value.isSparse) giveBack(value.storage)
}
