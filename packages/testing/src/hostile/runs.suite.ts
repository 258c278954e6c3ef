/**
 * Runs hostile inputs by the thousand: each target gets its share. An input that breaks a promise is reported with its seed, as an entry of
 * `corpus.suite.ts`. Between blocks the caller (`hostile-thread.fixture.ts`) measures memory.
 */
import { type Input, Random, type Target } from './case.suite.js'
import { chunks } from './chunks.suite.js'
import { handshakes } from './handshakes.suite.js'
import { Messages } from './messages.suite.js'
import { sessions } from './sessions.suite.js'
import { Stores } from './stores.suite.js'
import { texts } from './texts.suite.js'

/** Of one seed. */
export const BLOCK = 1000
export interface HostileReport {
  readonly cases: number
  /** By target and outcome. */
  readonly outcomes: ReadonlyMap<string, number>
  /** By the names of messages, with taken or refused. */
  readonly messages: ReadonlyMap<string, number>
  /** Broken promises, as lines; empty. */
  readonly problems: readonly string[]
  readonly slowestMs: number
}

export const makeTargets = (): readonly Target[] => [chunks, handshakes, sessions, new Messages(), new Stores(), texts]

/** @param onBlock after each thousand */
export async function hostileRuns(firstSeed: number, count: number, onBlock: (cases: number) => void = () => {}): Promise<HostileReport> {
  const targets = makeTargets()
  const shares = targets.flatMap((target) => Array.from({ length: target.share }, () => target))
  const outcomes = new Map<string, number>()
  const problems: string[] = []
  let cases = 0
  let slowestMs = 0
  for (let seed = firstSeed; cases < count && problems.length < 10; seed++) {
    const random = new Random(seed)
    const startMs = performance.now()
    for (let i = 0; i < BLOCK && cases < count; i++, cases++) {
      const target = shares[random.below(shares.length)] as Target
      const input = target.make(random)
      const key = `${target.name}: ${await outcomeOf(target, input, `seed ${seed}, case ${i}`, problems)}`
      outcomes.set(key, (outcomes.get(key) ?? 0) + 1)
    }
    for (const target of targets) {
      try {
        await target.check?.()
      } catch (error) {
        problems.push(`seed ${seed}, behind it, ${target.name}: ${error}`)
      }
    }
    slowestMs = Math.max(slowestMs, performance.now() - startMs)
    onBlock(cases)
  }
  const messages = targets.find((target): target is Messages => target instanceof Messages)!.met
  return { cases, outcomes, messages, problems, slowestMs }
}

async function outcomeOf(target: Target, input: Input, where: string, problems: string[]): Promise<string> {
  try {
    const outcome = target.feed(input)
    return typeof outcome === 'string' ? outcome : await outcome
  } catch (error) {
    const hex = input.map((bytes) => `'${Buffer.from(bytes).toString('hex')}'`)
    problems.push(`${where}: ${(error as Error).stack}\n{ target: '${target.name}', input: [${hex}] }`)
    return 'broken'
  }
}
