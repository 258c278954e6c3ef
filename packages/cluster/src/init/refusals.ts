/**
 * Reports to the user which connections this process has refused: five a minute at most, so that an attacker who dials again and again does not fill the log, nor the
 * memory. A text has the other end's address and a word of a fixed table, and nothing that the other end has sent. `init.ts` uses it.
 */
import { PostgradError } from '@postgrad/base'
import type { Clock } from '@postgrad/transport'

/** Reports in a period, and its length. The same address and code are reported once in it. */
const REPORTS = 5
const PERIOD_MS = 60_000

/** By `values.reason` of the refusal. */
const WHY: Readonly<Record<string, string>> = {
  key: 'its key differs',
  role: 'neither end has the key of the other’s role',
  credentials: 'its credentials are of another kind',
  certificate: 'a certificate was not accepted',
  version: 'its version of postgrad differs',
  cluster: 'its cluster has another name',
}

export class Refusals {
  private readonly clock: Clock
  private readonly report: (error: PostgradError) => void
  private readonly counts = new Map<string, { count: number; from: string }>()
  private reported = new Set<string>()
  private untilMs = 0
  private unreported = 0

  /** @param report gets the errors that the user sees */
  constructor(clock: Clock, report: (error: PostgradError) => void) {
    this.clock = clock
    this.report = report
  }

  note(from: string, { code, values, remedy }: PostgradError): void {
    this.counts.set(code, { count: (this.counts.get(code)?.count ?? 0) + 1, from })
    const nowMs = this.clock.now()
    if (nowMs >= this.untilMs) {
      this.untilMs = nowMs + PERIOD_MS
      this.reported = new Set()
    }
    const key = `${code} ${from}`
    if (this.reported.size >= REPORTS || this.reported.has(key)) {
      this.unreported++
      return
    }
    this.reported.add(key)
    const more = this.unreported === 0 ? '' : `; ${this.unreported} more since the last report`
    this.unreported = 0
    const reason = String(values.reason)
    const why = Object.hasOwn(WHY, reason) ? WHY[reason] : undefined
    this.report(
      new PostgradError(code, {
        op: 'init',
        message: `refused a connection from ${from}: ${code}${why === undefined ? '' : ` (${why})`}${more}`,
        ...(remedy === undefined ? {} : { remedy }),
        values: { from, reason },
      }),
    )
  }

  /** "; 1 connection from 10.0.0.2 was refused: AUTH_FAILED", for the error of a process that waited in vain; '' for none. */
  get summary(): string {
    return [...this.counts]
      .map(([code, { count, from }]) =>
        count === 1
          ? `; 1 connection from ${from} was refused: ${code}`
          : `; ${count} connections were refused, the last from ${from}: ${code}`,
      )
      .join('')
  }
}
