/** Where a worker's time goes: a row's spans from its tracer, by kind and name. `--trace` prints their sums below the row. */

import type { TraceEvent } from '@postgrad/base/internal'
import { traceWorker, type WorkerRuntime } from '@postgrad/rpc/internal'
import { currentWorker, expose, workerLocal } from 'postgrad'

/** Of one kind and name. */
export interface Total {
  readonly what: string
  count: number
  /** From begin to end, in ms. */
  ms: number
  /** Without what was traced within it; null: it waits, so other things happened meanwhile. */
  ownMs: number | null
}

/** Their spans nest: they begin and end in one turn. The others last over turns, side by side. */
const NESTED: ReadonlySet<TraceEvent['kind']> = new Set(['operation', 'kernel', 'node'])

export class TraceTotals {
  private readonly totals = new Map<string, Total>()
  private readonly begun = new Map<number, { readonly total: Total; readonly atMs: number; withinMs: number }>()
  private readonly nest: number[] = []

  readonly read = ({ phase, kind, name, span, atMs, values }: TraceEvent): void => {
    if (phase === 'end') {
      this.ended(kind, span, atMs)
      return
    }
    const isNested = NESTED.has(kind)
    const total = this.totalOf(`${kind} ${name}${kind === 'message' ? ` ${values.way}` : ''}`, isNested)
    total.count++
    if (phase === 'value') return
    this.begun.set(span, { total, atMs, withinMs: 0 })
    if (isNested) this.nest.push(span)
  }

  private totalOf(what: string, isNested: boolean): Total {
    let total = this.totals.get(what)
    if (total === undefined) {
      total = { what, count: 0, ms: 0, ownMs: isNested ? 0 : null }
      this.totals.set(what, total)
    }
    return total
  }

  private ended(kind: TraceEvent['kind'], span: number, atMs: number): void {
    const begun = this.begun.get(span)
    if (begun === undefined) return
    this.begun.delete(span)
    const ms = atMs - begun.atMs
    begun.total.ms += ms
    if (!NESTED.has(kind)) return
    begun.total.ownMs! += ms - begun.withinMs
    this.nest.pop()
    const around = this.begun.get(this.nest.at(-1) ?? 0)
    if (around !== undefined) around.withinMs += ms
  }

  /** The longest own time first, then the longest wait. */
  get sorted(): Total[] {
    return [...this.totals.values()].sort((a, b) => (b.ownMs ?? 0) - (a.ownMs ?? 0) || b.ms - a.ms || b.count - a.count)
  }
}

const reading = workerLocal((): { totals: TraceTotals; stop: () => void } => ({ totals: new TraceTotals(), stop: () => {} }))

/** On the worker that calls it. */
export function beginTrace(): void {
  const now = reading()
  now.stop()
  now.totals = new TraceTotals()
  now.stop = traceWorker(currentWorker() as WorkerRuntime, now.totals.read)
}

/** Totals of this worker since its `beginTrace`. */
export function endTrace(): Total[] {
  const { totals, stop } = reading()
  stop()
  return totals.sorted
}

expose({ 'bench.beginTrace': beginTrace, 'bench.endTrace': endTrace })

/** As lines for a reader; times are those of one of `n` times, in µs. */
export function traceText(worker: string, n: number, totals: readonly Total[]): string[] {
  const micros = (ms: number | null) => (ms === null ? '-' : ((ms * 1000) / n).toFixed(2)).padStart(12)
  return [
    `  ${worker}, each of ${n} times: ${'times'.padStart(36 - worker.length)}${'own µs'.padStart(12)}${'µs'.padStart(12)}`,
    ...totals.map(
      ({ what, count, ms, ownMs }) => `    ${what.padEnd(44)}${(count / n).toFixed(2).padStart(10)}${micros(ownMs)}${micros(ms)}`,
    ),
  ]
}
