/**
 * Makes a failing run smaller: fewer faults, and of the decisions about its order only those without which it does not fail; all others are the
 * default, the choice that waits longest (`FairSchedule`). Each try is a run, kept if it fails in the same way. After Zeller and Hildebrandt,
 * "Simplifying and Isolating Failure-Inducing Input" (2002), in halves first and in single pieces at last.
 *
 *     all faults, all decisions ─→ no fault? ─→ half of them, quarters, …, single ones ─→ no decision? ─→ half of them, …
 */
import { stripVTControlCharacters } from 'node:util'
import { isPostgradError } from '@postgrad/base'
import type { FaultRecord, Trace } from '@postgrad/sim'
import type { FaultRule } from '../faults/message-kind.js'
import type { RunVariant } from './replay-token.js'

/** A run that failed, as it was. */
export interface FailedRun {
  readonly error: unknown
  readonly variant: RunVariant
  /** All that was decided in it. */
  readonly decisions: readonly number[]
  /** What rules did to frames, and which of the decisions were about rules. */
  readonly faults: readonly FaultRecord[]
  readonly faultDraws: readonly number[]
  readonly plan: readonly FaultRule[]
  /** Null where there was more than one. */
  readonly trace: Trace | null
}

/** The limits of shrinking: `simulate` repeats a failing run with fewer faults and simpler orders, until one of these limits. */
export interface ShrinkOptions {
  /** How many runs to try at most. Default 200. */
  readonly runs?: number
  /** How long shrinking may take, in ms of real time. Default 5000. In a test of Jest or vitest, by default only until shortly before the test's timeout. */
  readonly timeMs?: number
}

export interface Shrunk {
  readonly failed: FailedRun
  /** How many runs were tried. */
  readonly runs: number
  /** Nothing was left to try: not merely out of runs or time. */
  readonly isDone: boolean
}

interface Tools {
  /** Makes a run; null if it does not fail. */
  attempt(variant: RunVariant): Promise<FailedRun | null>
  now(): number
  onProgress?(tried: number, max: number, failed: FailedRun): void
}

const RUNS = 200
export const TIME_MS = 5000

export async function shrink(first: FailedRun, options: ShrinkOptions, tools: Tools): Promise<Shrunk> {
  const shrinker = new Shrinker(first, options, tools)
  await shrinker.fewerFaults()
  await shrinker.fewerDecisions()
  return { failed: shrinker.best, runs: shrinker.tried, isDone: !shrinker.isOut }
}

/** How many decisions are not the default. */
export function choices(decisions: readonly number[] | null): number {
  return decisions === null ? 0 : decisions.filter(isChoice).length
}

/** 0 and −1 are what is done where nothing is said: see Note [Decisions] of `sim`. */
const isChoice = (decision: number): boolean => decision !== 0 && decision !== -1

class Shrinker {
  best: FailedRun
  tried = 0
  private readonly max: number
  private readonly endMs: number
  private readonly tools: Tools

  constructor(first: FailedRun, { runs = RUNS, timeMs = TIME_MS }: ShrinkOptions, tools: Tools) {
    // Said in full, so that it is the same run whatever is taken away from it.
    this.best = { ...first, variant: said(first) }
    this.max = runs
    this.endMs = tools.now() + timeMs
    this.tools = tools
  }

  get isOut(): boolean {
    return this.tried >= this.max || this.tools.now() >= this.endMs
  }

  /** With other faults another list of decisions is the one that fits. */
  async fewerFaults(): Promise<void> {
    await this.fewest(this.best.variant.faults ?? [], (faults) => this.takes({ faults }, true))
  }

  async fewerDecisions(): Promise<void> {
    const all = this.best.variant.decisions ?? []
    const choices = all.flatMap((decision, at) => (isChoice(decision) ? [at] : []))
    const list = (kept: readonly number[]): number[] => {
      const keep = new Set(kept)
      const end = (kept.at(-1) ?? -1) + 1
      return all.slice(0, end).map((decision, at) => (keep.has(at) ? decision : decision < 0 ? -1 : 0))
    }
    await this.fewest(choices, (kept) => this.takes({ decisions: list(kept) }, false))
    // If nothing could be taken away, its end, where nothing is said, can.
    if (this.best.variant.decisions === all && choices.length > 0) await this.takes({ decisions: list(choices) }, false)
  }

  /** Fewer and fewer of the items, in their order, as long as the test takes what is left. */
  private async fewest<T>(items: readonly T[], test: (kept: readonly T[]) => Promise<boolean>): Promise<void> {
    if (items.length === 0 || this.isOut || (await test([]))) return
    let kept = items
    for (let size = Math.ceil(kept.length / 2); kept.length > 1; ) {
      let isLess = false
      for (let at = 0; at < kept.length && !this.isOut; ) {
        const less = [...kept.slice(0, at), ...kept.slice(at + size)]
        if (less.length < kept.length && less.length > 0 && (await test(less))) {
          kept = less
          isLess = true
        } else at += size
      }
      if (this.isOut || (size === 1 && !isLess)) return
      if (size > 1) size = Math.ceil(size / 2)
    }
  }

  /** Whether the run still fails so; it is the best one then. */
  private async takes(change: Partial<RunVariant>, refits: boolean): Promise<boolean> {
    if (this.isOut) return false
    this.tried++
    const failed = await this.tools.attempt({ ...this.best.variant, ...change })
    const isSame = failed !== null && sameFailure(failed.error, this.best.error)
    if (isSame) this.best = refits ? { ...failed, variant: said(failed) } : failed
    this.tools.onProgress?.(this.tried, this.max, this.best)
    return isSame
  }
}

/** The run in full: all that happened to frames, and all decisions but those about rules, which are asked nothing then. */
function said({ variant, decisions, faults, faultDraws, plan }: FailedRun): RunVariant {
  const about = new Set(faultDraws)
  return { ...variant, decisions: decisions.filter((_, at) => !about.has(at)), faults: plan.length === 0 ? null : faults }
}

/** Whether two runs failed for what looks like the same reason: code and operation, or name and first line, numbers aside. */
export function sameFailure(one: unknown, other: unknown): boolean {
  return kindOf(one) === kindOf(other)
}

function kindOf(error: unknown): string {
  if (isPostgradError(error)) return `${error.code} ${error.op}`
  const { name, message } = (error ?? {}) as Partial<Error>
  const [line = ''] = String(message ?? error).split('\n')
  // Without the colours of a test runner.
  return `${name} ${stripVTControlCharacters(line).replaceAll(/\d+(\.\d+)?/g, '#')}`
}
