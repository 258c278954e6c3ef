/**
 * Checkers over `simulation.messages`: no message vanished or came twice, no request ran twice, every place in a window was given back. Each throws one
 * typed error with all that it found; `expectSound` calls them all.
 */
import { PostgradError } from '@postgrad/base'
import { DAMAGED } from '../faults/message-kind.js'
import type { MessageCount, Messages } from '../simulate/message-ledger.js'

/** The parts of a `Simulation` that `expectConserved`, `expectExecutedOnce` and `expectCreditsReturned` read. */
export interface Counted {
  /** The counts of all messages. Null (with `countMessages: false`) makes the check fail. */
  readonly messages: Messages | null
  /** The seed, for the error. */
  readonly seed?: number
}

/**
 * Checks that no message was lost or multiplied. For every pair of workers and every kind of message: if both workers live, sent = received; if one has ended,
 * received ≤ sent. Dead letters count as received. Also, for all frames: sent + repeated = delivered + dropped + lost + delayed + in flight.
 * @throws NOT_CONSERVED if a count is wrong; NOT_COUNTED if the simulation ran with `countMessages: false`
 * @example expectConserved(await simulate({ workers: 2 }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x]))))
 */
export function expectConserved({ messages, seed }: Counted): void {
  const { counts, frames } = counted('expectConserved', messages)
  const wrong = [...unevenPairs(counts)]
  const { sent, repeated, delivered, dropped, lost, putOff, inFlight } = frames
  if (sent + repeated !== delivered + dropped + lost + putOff + inFlight) {
    const ended = `${delivered} delivered + ${dropped} dropped + ${lost} lost with an end`
    wrong.push(`frames: ${sent} sent + ${repeated} repeated, but ${ended} + ${putOff} put off + ${inFlight} in flight`)
  }
  fail('expectConserved', 'NOT_CONSERVED', 'messages are not accounted for', wrong, seed)
}

/**
 * Checks that no request (call, remote call, fetch) arrived or began twice at a worker, even if its frames were sent again. A request that a serial actor puts off
 * and begins later counts once.
 * @throws EXECUTED_TWICE if a request arrived or began twice; NOT_COUNTED if the simulation ran with `countMessages: false`
 * @example
 * const faults = randomFaults({ crashes: 0, restarts: 0 }) // frames are lost, repeated and delayed
 * expectExecutedOnce(await simulate({ workers: 2, faults }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x]))))
 */
export function expectExecutedOnce({ messages, seed }: Counted): void {
  const wrong = counted('expectExecutedOnce', messages).repeated.map(
    ({ from, to, kind, what, requestId, received, begun }) =>
      `${from} → ${to} ${kind}${what === '' ? '' : ` ${what}`} (request ${requestId}): arrived ${received} times, began ${begun} times`,
  )
  fail('expectExecutedOnce', 'EXECUTED_TWICE', 'requests that arrived or ran more than once', wrong, seed)
}

/**
 * Checks the windows for calls and fetches between all living workers. All calls and fetches have begun or were refused; sender and receiver agree on their number
 * and bytes; and the sender counts as waiting exactly those that the receiver has not reported yet. A lost credit would make a window smaller forever.
 * @throws CREDITS_LOST if a window is wrong; NOT_COUNTED if the simulation ran with `countMessages: false`
 * @example expectCreditsReturned(await simulate({ workers: 2 }, (sim) => sim.on('worker0').run(() => call('worker1', addOne, [x]))))
 */
export function expectCreditsReturned({ messages, seed }: Counted): void {
  const wrong = counted('expectCreditsReturned', messages).credits.flatMap((credit) => {
    const { from, to, window, sent, sentBytes, begun, begunBytes, waiting, counted: taken, untold } = credit
    const pair = `${from} → ${to} ${window}`
    const lines: string[] = []
    if (waiting !== 0) lines.push(`${pair}: ${waiting} ${waiting === 1 ? 'has' : 'have'} not begun`)
    else if (sent !== begun || sentBytes !== begunBytes) {
      lines.push(`${pair}: ${sent} sent (${sentBytes} bytes), ${begun} begun (${begunBytes} bytes)`)
    }
    if (taken !== untold) lines.push(`${pair}: the sender counts ${taken} as waiting, the receiver has not reported ${untold}`)
    return lines
  })
  fail('expectCreditsReturned', 'CREDITS_LOST', 'places in windows were not given back', wrong, seed)
}

function* unevenPairs(counts: readonly MessageCount[]): Iterable<string> {
  // An unreadable message has no kind: then only a pair's sum can be compared.
  const blurred = new Set(counts.filter(({ kind }) => kind === DAMAGED).map(pairOf))
  const sums = new Map<string, MessageCount>()
  for (const count of counts) {
    const key = blurred.has(pairOf(count)) ? pairOf(count) : `${pairOf(count)} ${count.kind}`
    const sum = sums.get(key)
    if (sum === undefined) sums.set(key, blurred.has(pairOf(count)) ? { ...count, kind: 'of all kinds' } : count)
    else sums.set(key, { ...sum, sent: sum.sent + count.sent, received: sum.received + count.received })
  }
  for (const { from, fromId, to, toId, kind, sent, received, deadLetters, bothLive } of sums.values()) {
    if (received > sent || (bothLive && received < sent)) {
      const letters = deadLetters === 0 ? '' : ` (${deadLetters} of them dead letters)`
      const how = received > sent ? 'more came than were sent' : 'both live, and some never came'
      yield `${from} (${fromId}) → ${to} (${toId}) ${kind}: ${sent} sent, ${received} received${letters}: ${how}`
    }
  }
}

function pairOf({ fromId, toId }: MessageCount): string {
  return `${fromId}>${toId}`
}

function counted(op: string, messages: Messages | null): Messages {
  if (messages !== null) return messages
  throw new PostgradError('NOT_COUNTED', {
    op,
    expected: 'a simulation whose messages were counted',
    got: 'one that ran with countMessages: false',
    remedy: 'Leave countMessages out.',
  })
}

function fail(op: string, code: string, what: string, wrong: readonly string[], seed: number | undefined): void {
  if (wrong.length === 0) return
  throw new PostgradError(code, {
    op,
    message: `${what}:\n  ${wrong.join('\n  ')}\n`,
    values: { wrong, ...(seed === undefined ? {} : { seed }) },
  })
}
