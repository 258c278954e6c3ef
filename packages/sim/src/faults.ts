/**
 * Fault rules of a simulated world: `sim-link.ts` asks here about each frame before it delivers it. A rule says which frames (pair, kind,
 * the nth, with what probability) and what happens to them. Under rules every link runs under a session, which turns a loss into a delay and
 * drops duplicates: the program notices only a fault that lasts longer than a deadline.
 *
 *     frame arrives ─→ rule 1 ─ does not match ─→ rule 2 ─ matches ─→ drop | duplicate | delay | slow | crash | restart | pass
 *                                                                          └ none matches: it is delivered
 */
import { PostgradError } from '@postgrad/base'
import type { Frame } from '@postgrad/transport'
import { SessionKind, sessionHead, sessionPayload } from '@postgrad/transport/internal'
import { didYouMean } from './similar-name.js'

/**
 * The effect of a fault rule on a frame.
 * - 'pass': the frame is delivered, and later rules do not apply to it
 * - 'drop': the frame is lost; its session sends it again
 * - 'duplicate': the frame is delivered, and once more after `delayMs` (0: after the frames in flight)
 * - 'delay': the frame arrives `delayMs` later, and later frames overtake it
 * - 'slow': the frame takes `delayMs`, and waits for its turn on a line of `bytesPerMs`; the frames of a pair keep their order
 * - 'crash': the frame is lost, and a worker (`worker`, by default the receiver) crashes
 * - 'restart': as 'crash', and after `delayMs` the worker starts again under its name
 */
export type FaultAction =
  /** The frame is delivered, and later rules do not apply to it. */
  | 'pass'
  /** The frame is lost; its session sends it again. */
  | 'drop'
  /** The frame is delivered, and once more after `delayMs` (0: after the frames in flight). */
  | 'duplicate'
  /** The frame arrives `delayMs` later, and later frames overtake it. */
  | 'delay'
  /** The frame takes `delayMs`, and waits for its turn on a line of `bytesPerMs`: frames of a pair keep their order. It counts as a delay. */
  | 'slow'
  /** The frame is lost, and a worker (`worker`, by default the receiver) crashes before the world's next step. */
  | 'crash'
  /** As `crash`, and after `delayMs` the worker starts again under its name, as by `SimCluster.restart`. */
  | 'restart'

/** The actions of fault rules that `simulation.faults` counts. 'slow' counts as 'delay'. */
export type FaultKind = Exclude<FaultAction, 'pass' | 'slow'>

export const FAULT_KINDS: readonly FaultKind[] = ['drop', 'duplicate', 'delay', 'crash', 'restart']

/** A frame that is about to be delivered: the argument of a fault rule's `match` function. */
export interface FaultFrame {
  /** The sender's name. */
  readonly from: string
  /** The receiver's name. */
  readonly to: string
  /** The kind of its message: CALL, RREF_ACK, …. Frames of the session itself have SESSION_ACK and SESSION_END. */
  readonly kind: string
  /** The size of the frame's header and segments. */
  readonly bytes: number
  /** The virtual time at which the frame was sent, in ms. */
  readonly timeMs: number
  /** The number of the message among those from `from` to `to`. A message that is sent again keeps its number. 0 for a SESSION_ACK. */
  readonly message: number
}

/** The conditions of a fault rule; a frame must meet all that are given. Of the frames that meet the others, `nth`, `every` and `probability` choose, in this order. */
export interface FaultMatch {
  /** The names of senders. Default: all workers. */
  readonly from?: string | readonly string[]
  /** The names of receivers. Default: all workers. */
  readonly to?: string | readonly string[]
  /** Two sides: messages from a worker of one side to a worker of the other, in either direction. */
  readonly between?: readonly [string | readonly string[], string | readonly string[]]
  /** The kinds of messages. Default: all kinds. */
  readonly kind?: string | readonly string[]
  /** A function that says whether the rule applies. */
  readonly when?: (frame: FaultFrame) => boolean
  /** Only the nth message, from 1, of those that meet the conditions above. A message that is sent again counts again. */
  readonly nth?: number
  /** Only every nth message of those that meet the conditions above: with 3 the third, the sixth, …. */
  readonly every?: number
  /** The probability that the rule applies, from 0 to 1. The simulation's seed decides. */
  readonly probability?: number
}

export interface FaultRule {
  /** The messages, or a function that says whether the rule applies. Default: all messages. */
  readonly match?: FaultMatch | ((frame: FaultFrame) => boolean)
  /** The action on these messages. */
  readonly do: FaultAction
  /** The delay of 'delay' (default 10), and of 'duplicate', 'slow' and 'restart' (default 0). */
  readonly delayMs?: number
  /** For 'slow': the speed of the line, in bytes per ms. Default: unlimited. */
  readonly bytesPerMs?: number
  /** For 'crash' and 'restart': the worker that ends. Default: the receiver of the message. */
  readonly worker?: string
  /** How often the rule applies. Default: unlimited, and once for 'crash' and 'restart'. */
  readonly times?: number
  /** How often the rule applies to each message. A message that is sent again is the same message. PyTorch: `num_fail_sends`. */
  readonly timesEach?: number
  /** When the rule begins. Default 0. */
  readonly fromMs?: number
  /** When the rule ends. Default: never. */
  readonly untilMs?: number
}

export interface FaultOptions {
  readonly rules: readonly FaultRule[]
  /** The kind of message that a frame of the program is. */
  readonly classify?: (frame: Frame) => string
  /** All that `classify` can say; a rule about another kind is refused, since it would never apply. */
  readonly kinds?: readonly string[]
  /** Brings a crashed worker back, for the action restart. */
  readonly restart?: (worker: string) => void
  /** Only these happen, whatever the rules say: for a run that is repeated with fewer faults. Rules that are added later apply as always. */
  readonly exactly?: readonly FaultRecord[]
}

/** A fault that happened, by the frame that it happened to: the same frame in a run with fewer of them. */
export interface FaultRecord {
  /** "worker0→worker1 CALL 3", and how often it had been seen before where that is not never: "… 3/1". */
  readonly frame: string
  readonly action: FaultKind
  readonly delayMs: number
  readonly worker: string
}

/** The decision about a frame. */
export interface Verdict {
  readonly action: FaultKind
  readonly delayMs: number
  readonly worker: string
}

const DELAY_MS = 10
const SESSION_KINDS: Readonly<Record<number, string>> = { [SessionKind.ACK]: 'SESSION_ACK', [SessionKind.END]: 'SESSION_END' }

/** One rule with what it has counted. */
class Rule {
  readonly rule: FaultRule
  /** Frames that matched but for `nth`, `every` and `probability`. */
  private seen = 0
  private timesLeft: number
  private readonly perMessage = new Map<string, number>()
  /** By pair: until when its slow line is busy. */
  private readonly busyUntilMs = new Map<string, number>()

  constructor(rule: FaultRule) {
    this.rule = rule
    this.timesLeft = rule.times ?? (rule.do === 'crash' || rule.do === 'restart' ? 1 : Number.POSITIVE_INFINITY)
    checkRule(rule)
  }

  applies(frame: FaultFrame, draw: ChanceDraw): boolean {
    const { match, fromMs = 0, untilMs = Number.POSITIVE_INFINITY, timesEach } = this.rule
    if (this.timesLeft <= 0 || frame.timeMs < fromMs || frame.timeMs >= untilMs) return false
    if (typeof match === 'function' ? !match(frame) : match !== undefined && !this.matches(match, frame, draw)) return false
    if (timesEach !== undefined && !this.countEach(frame, timesEach)) return false
    this.timesLeft--
    return true
  }

  /** How much later the frame arrives. */
  delayOf({ from, to, bytes, timeMs }: FaultFrame): number {
    const { do: action, delayMs = action === 'delay' ? DELAY_MS : 0, bytesPerMs = Number.POSITIVE_INFINITY } = this.rule
    if (action !== 'slow') return delayMs
    const pair = `${from}→${to}`
    const sentMs = Math.max(this.busyUntilMs.get(pair) ?? 0, timeMs) + bytes / bytesPerMs
    this.busyUntilMs.set(pair, sentMs)
    return sentMs + delayMs - timeMs
  }

  private matches({ from, to, between, kind, when, nth, every, probability }: FaultMatch, frame: FaultFrame, draw: ChanceDraw): boolean {
    if (!isOneOf(frame.from, from) || !isOneOf(frame.to, to) || !isOneOf(frame.kind, kind)) return false
    if (between !== undefined && !isBetween(frame, between)) return false
    if (when !== undefined && !when(frame)) return false
    this.seen++
    if (nth !== undefined && this.seen !== nth) return false
    if (every !== undefined && this.seen % every !== 0) return false
    return probability === undefined || draw(probability)
  }

  private countEach({ from, to, kind, message }: FaultFrame, max: number): boolean {
    const key = `${from}→${to} ${kind} ${message}`
    const times = this.perMessage.get(key) ?? 0
    this.perMessage.set(key, times + 1)
    return times < max
  }
}

/** Whether what has this probability comes about. */
type ChanceDraw = (probability: number) => boolean

/** The rules of one world. */
export class Faults {
  readonly injected: Record<FaultKind, number> = { drop: 0, duplicate: 0, delay: 0, crash: 0, restart: 0 }
  readonly restart: (worker: string) => void
  /** The faults so far, in order. */
  readonly happened: FaultRecord[] = []
  private rules: readonly Rule[]
  private readonly kinds: readonly string[] | null
  private readonly classify: (frame: Frame) => string
  /** By frame; null: the rules decide. */
  private exactly: Map<string, FaultRecord> | null
  private readonly seen = new Map<string, number>()

  /** @throws INVALID_ARGUMENT */
  constructor({ rules, classify = () => '', kinds, restart = cannotRestart, exactly }: FaultOptions) {
    this.kinds = kinds === undefined ? null : [...kinds, ...Object.values(SESSION_KINDS)]
    const checked = rules.map((rule) => this.checked(rule))
    this.rules = exactly === undefined ? checked : []
    this.exactly = exactly === undefined ? null : new Map(exactly.map((record) => [record.frame, record]))
    this.classify = classify
    this.restart = restart
  }

  /** A rule that goes before all others, from now until it is taken away by what is returned. @throws INVALID_ARGUMENT */
  add(rule: FaultRule): () => void {
    const added = this.checked(rule)
    this.rules = [added, ...this.rules]
    return () => {
      this.rules = this.rules.filter((each) => each !== added)
    }
  }

  /** Nothing is done to frames any more; who is to come back comes back. */
  end(): void {
    this.rules = []
    this.exactly = null
  }

  /** The first rule that applies decides; null: the frame is delivered. */
  judge(from: string, to: string, frame: Frame, bytes: number, timeMs: number, draw: ChanceDraw): Verdict | null {
    const head = sessionHead(frame)
    const kind = head === null ? this.classify(frame) : (SESSION_KINDS[head.kind] ?? this.classify(sessionPayload(frame)))
    const seen: FaultFrame = { from, to, kind, bytes, timeMs, message: head?.seq ?? 0 }
    const name = this.nameOf(seen)
    const verdict = this.exactly?.get(name) ?? this.byRules(seen, draw)
    if (verdict === null) return null
    const { action, delayMs, worker } = verdict
    this.injected[action]++
    this.happened.push({ frame: name, action, delayMs, worker })
    return verdict
  }

  private byRules(frame: FaultFrame, draw: ChanceDraw): Verdict | null {
    const decides = this.rules.find((each) => each.applies(frame, draw))
    if (decides === undefined || decides.rule.do === 'pass') return null
    const { rule } = decides
    return {
      action: rule.do === 'slow' ? 'delay' : (rule.do as FaultKind),
      delayMs: decides.delayOf(frame),
      worker: rule.worker ?? frame.to,
    }
  }

  private nameOf({ from, to, kind, message }: FaultFrame): string {
    const name = `${from}→${to} ${kind} ${message}`
    const times = this.seen.get(name) ?? 0
    this.seen.set(name, times + 1)
    return times === 0 ? name : `${name}/${times}`
  }

  private checked(rule: FaultRule): Rule {
    checkKeys(rule)
    if (this.kinds !== null) checkKinds(rule, this.kinds)
    return new Rule(rule)
  }
}

/** From one of the first to one of the second, or back. */
function isBetween({ from, to }: FaultFrame, [one, other]: NonNullable<FaultMatch['between']>): boolean {
  return (isOneOf(from, one) && isOneOf(to, other)) || (isOneOf(from, other) && isOneOf(to, one))
}

function isOneOf(name: string, names: string | readonly string[] | undefined): boolean {
  return names === undefined || (typeof names === 'string' ? names === name : names.includes(name))
}

/** All keys of a rule and of its match: one that is missing here does not compile. */
const RULE_KEYS = Object.keys({
  match: true,
  do: true,
  delayMs: true,
  bytesPerMs: true,
  worker: true,
  times: true,
  timesEach: true,
  fromMs: true,
  untilMs: true,
} satisfies Record<keyof FaultRule, true>)
const MATCH_KEYS = Object.keys({
  from: true,
  to: true,
  between: true,
  kind: true,
  when: true,
  nth: true,
  every: true,
  probability: true,
} satisfies Record<keyof FaultMatch, true>)

/** A condition with a wrong name would be ignored, and the rule would apply to every frame. */
function checkKeys(rule: FaultRule): void {
  if (typeof rule !== 'object' || rule === null) throw unknownKeys('a rule', RULE_KEYS, String(rule), 'Write { match: { … }, do: … }.', [])
  const { match } = rule
  if (match !== undefined && typeof match !== 'function' && (typeof match !== 'object' || match === null))
    throw unknownKeys('match', MATCH_KEYS, String(match), 'Write { match: { kind: … }, do: … }, or a function as match.', [])
  refuseUnknown('a rule', rule, RULE_KEYS, MATCH_KEYS, 'in match')
  if (typeof match === 'object') refuseUnknown('match', match, MATCH_KEYS, RULE_KEYS, 'next to match')
}

/** @param elsewhere keys that are known in another place, `place` */
function refuseUnknown(what: string, object: object, known: readonly string[], elsewhere: readonly string[], place: string): void {
  const unknown = Object.keys(object).filter((key) => !known.includes(key))
  if (unknown.length === 0) return
  const meant = unknown
    .map((key) => (elsewhere.includes(key) ? `Write ${key} ${place}.` : didYouMean(key, known)))
    .filter((text) => text !== '')
  throw unknownKeys(what, known, unknown.join(', '), meant.join(' ') || 'Correct the name, or leave it out.', unknown)
}

function unknownKeys(what: string, known: readonly string[], got: string, remedy: string, unknown: readonly string[]): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', {
    op: 'faults',
    expected: `${what} with the keys ${known.join(', ')}`,
    got,
    remedy,
    values: { unknown },
  })
}

function checkKinds({ match }: FaultRule, known: readonly string[]): void {
  const { kind = [] } = typeof match === 'object' ? match : {}
  const unknown = (typeof kind === 'string' ? [kind] : kind).filter((each) => !known.includes(each))
  if (unknown.length === 0) return
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'faults',
    expected: `kinds of messages: ${known.join(', ')}`,
    got: unknown.join(', '),
    remedy: didYouMean(unknown[0]!, known) || 'A rule about a kind that does not exist would never apply.',
    values: { unknown },
  })
}

function checkRule(rule: FaultRule): void {
  const { delayMs = 0, bytesPerMs = 1, times = 1, timesEach = 1, match } = rule
  const { nth = 1, every = 1, probability = 0 } = typeof match === 'object' ? match : {}
  const isDone = rule.do === 'pass' || rule.do === 'slow' || FAULT_KINDS.includes(rule.do)
  const isFine = bytesPerMs > 0 && delayMs >= 0 && Number.isFinite(delayMs) && times >= 0 && timesEach >= 0 && nth >= 1 && every >= 1
  if (isDone && isFine && probability >= 0 && probability <= 1) return
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'faults',
    expected: `one of pass, slow, ${FAULT_KINDS.join(', ')}; times and counts that are not negative, a probability from 0 to 1`,
    got: JSON.stringify(rule),
    remedy: 'A rule is { match?: { from, to, between, kind, nth, every, probability, when }, do, delayMs?, times?, … }.',
  })
}

function cannotRestart(worker: string): never {
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'faults',
    expected: 'somebody who can start a worker again',
    got: `a rule that restarts '${worker}' in a world without`,
    remedy: 'Use the rule with simulate(), or give the world faults.restart.',
  })
}
