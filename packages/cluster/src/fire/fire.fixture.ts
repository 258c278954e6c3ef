/**
 * Training under fire: a group trains, round for round, while a plan strikes its network and its processes. Each round must give the bits of the same training in one
 * place, or a typed error before its deadline. Then the group is made whole, and continues from the last checkpoint.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Random } from '@postgrad/sim/internal'
import type { ConnectionOptions } from '../init/connections.js'
import { FireGroup, RANKS } from './fire-group.fixture.js'
import { CONNECTION, FirePlan, type Round, type Strike, type World } from './fire-plan.fixture.js'
import { type FireMember, MemberFailed } from './fire-process.fixture.js'
import type { Failure, MemberOptions, Told } from './fixtures/fire-member.js'
import { type StepBits, TrainingAtHome } from './fixtures/fire-model.js'

export interface FireOptions {
  readonly rounds: number
  readonly seed: number
  /** In addition to the group's own options. */
  readonly init?: Partial<MemberOptions>
  /** When a connection is given up; default CONNECTION. On a busy machine a process may stall for longer than that. */
  readonly connection?: Required<ConnectionOptions>
  /** Instead of the seed's. */
  readonly plan?: readonly Round[]
  /** Of all groups, instead of the seed's. */
  readonly world?: World
  /** A weight is changed after this step, for the test of the test. */
  readonly wrongAfter?: number
  readonly onRound?: (line: string) => void
}

export interface FireResult {
  readonly rounds: number
  /** Rounds that ended in the right bits, by what they were struck with or not. */
  readonly right: number
  readonly quiet: number
  /** The others, by the code of their error; 'killed': the process that trains was. */
  readonly errors: Readonly<Record<string, number>>
  readonly strikes: Readonly<Record<string, number>>
  /** Processes that could not take a rank, by the code of their error; they were started again. */
  readonly unjoined: Readonly<Record<string, number>>
  /** Steps whose bits were compared, and the number of the last. */
  readonly compared: number
  readonly step: number
  readonly resumed: number
  readonly saved: number
  readonly restarted: number
  readonly groups: number
  /** Rounds in each. */
  readonly worlds: Readonly<Record<string, number>>
  readonly seconds: number
  readonly longestMs: number
}

/** Worker1, which does not serve the store. */
const TRAINER = 1
const STEPS = 3
const SAVE_EVERY = 3
/** From the start of a round to its last word. A call takes 3 s at most, a death 2: what takes so long hangs. */
const DEADLINE_MS = 20_000
/** A group knows of its deaths, and has cleaned up, long before. */
const SETTLE_MS = 10_000
const LOOK_MS = 5000
/** What one that was given up had sent before may still be on its way to those that are connected with it: the exchange's `lingerMs`, and some. */
const LINGER_MS = 1100

/** @throws with the seed and the plan, at the first thing that is not as it must be */
export async function fire(options: FireOptions): Promise<FireResult> {
  const rounds = new Rounds(options)
  let index = 0
  let round: Round | null = null
  try {
    await rounds.begin()
    const { plan } = rounds
    for (; index < options.rounds; index++) {
      round = options.plan?.[index] ?? plan.next()
      await rounds.run(round)
      options.onRound?.(`round ${index} (${rounds.world}): ${rounds.lastWord}; ${describe(round)}`)
    }
    round = null
    await rounds.end()
    return rounds.result(options.rounds)
  } catch (error) {
    const where = `seed ${options.seed}, round ${index}, ${rounds.world}, plan ${JSON.stringify(round)}`
    throw new Error(`${where}: ${(error as Error).message}`, { cause: error })
  } finally {
    await rounds.discard()
  }
}

class Rounds {
  readonly plan: FirePlan
  lastWord = ''
  world: World = 'tcp'
  private readonly options: FireOptions
  private readonly home = new TrainingAtHome()
  private readonly directory = mkdtempSync(join(tmpdir(), 'postgrad-fire-'))
  private readonly random: Random
  private readonly connection: Required<ConnectionOptions>
  private readonly startedMs = performance.now()
  private group: FireGroup | null = null
  /** The trainer's state is that of the last step it has reported. */
  private isWhole = false
  /** By some that live. */
  private isRank0GivenUp = false
  private step = 0
  private savedStep = 0
  private readonly counts = { right: 0, quiet: 0, compared: 0, resumed: 0, saved: 0, restarted: 0, groups: 0 }
  private readonly worlds: Record<string, number> = {}
  private readonly errors: Record<string, number> = {}
  private readonly strikes: Record<string, number> = {}
  private readonly unjoined: Record<string, number> = {}
  private longestMs = 0

  constructor(options: FireOptions) {
    this.options = options
    this.plan = new FirePlan(options.seed)
    this.random = new Random(options.seed + 1)
    this.connection = options.connection ?? CONNECTION
  }

  async begin(): Promise<void> {
    this.isWhole = false
    this.counts.groups++
    this.world = this.options.world ?? this.plan.world()
    const more = { connection: this.connection, ...this.options.init }
    this.group = await FireGroup.start({ random: this.random, world: this.world, directory: this.directory, more })
  }

  async run(round: Round): Promise<void> {
    const beganMs = performance.now()
    this.worlds[this.world] = (this.worlds[this.world] ?? 0) + 1
    const failure = await this.train(round)
    this.longestMs = Math.max(this.longestMs, performance.now() - beganMs)
    if (failure === null) {
      this.counts.right++
      if (round.strikes.length === 0) this.counts.quiet++
    } else {
      if (round.strikes.length === 0) throw new Error(`nothing was struck: ${failure.code} ${failure.message}`)
      this.isWhole = false
      this.errors[failure.code] = (this.errors[failure.code] ?? 0) + 1
    }
    this.lastWord = failure === null ? `right, step ${this.step}` : `${failure.code}: ${failure.message}`
    await this.heal(round)
  }

  async end(): Promise<void> {
    await this.group!.shutdown(SETTLE_MS)
    for (const member of this.group!.members) checkComplaints(member)
    this.group = null
  }

  async discard(): Promise<void> {
    await this.group?.discard()
    rmSync(this.directory, { recursive: true, force: true })
  }

  result(rounds: number): FireResult {
    const { counts, worlds, errors, strikes, unjoined, step, longestMs } = this
    const seconds = (performance.now() - this.startedMs) / 1000
    return { rounds, ...counts, worlds, errors, strikes, unjoined, step, seconds, longestMs: Math.round(longestMs) }
  }

  /** @returns what it has ended with; null if all steps were done */
  private async train(round: Round): Promise<Failure | null> {
    const trainer = this.group!.members[TRAINER]!
    const over = trainer.hear(DEADLINE_MS, ({ told }) => told === 'trained' || told === 'failed')
    over.catch(() => {})
    let wrong: Error | null = null
    const stop = trainer.listen((told) => {
      try {
        this.hear(told)
      } catch (error) {
        wrong ??= error as Error
      }
    })
    const { directory } = this
    const wrongAfter = this.options.wrongAfter === undefined ? {} : { wrongAfter: this.options.wrongAfter }
    trainer.tell({ ask: 'train', plan: { directory, resume: !this.isWhole, steps: STEPS, saveEvery: SAVE_EVERY, ...wrongAfter } })
    this.isWhole = true
    await Promise.all(round.strikes.map((strike) => this.strike(strike)))
    trainer.tell({ ask: 'enough' })
    try {
      const last = await over
      if (wrong !== null) throw wrong
      const { failure } = last as Extract<Told, { told: 'trained' | 'failed' }>
      if (failure !== null && !failure.isTyped) throw new Error(`an error without a type: ${failure.message}`)
      return failure
    } catch (error) {
      if (wrong !== null || !trainer.isKilled) throw wrong ?? error
      return { isTyped: true, code: 'killed', message: 'the process that trains was killed' }
    } finally {
      stop()
    }
  }

  private hear(told: Told): void {
    if (told.told === 'step') this.compare(told.bits)
    else if (told.told === 'saved') {
      this.counts.saved++
      this.savedStep = told.step
    } else if (told.told === 'resumed') {
      this.counts.resumed++
      // A checkpoint may have been written whole by one who could not say so any more.
      if (told.step !== this.savedStep && told.step !== this.step)
        throw new Error(`resumed at step ${told.step}, saved was ${this.savedStep}`)
      this.step = told.step
    }
  }

  private compare(bits: StepBits): void {
    if (bits.step !== this.step + 1) throw new Error(`step ${bits.step} behind step ${this.step}`)
    this.step = bits.step
    this.counts.compared++
    const home = this.home.bits(bits.step)
    if (JSON.stringify(bits) !== JSON.stringify(home))
      throw new Error(`wrong bits: ${JSON.stringify(bits)}, at home ${JSON.stringify(home)}`)
  }

  /** Resolves when it is over. */
  private async strike(strike: Strike): Promise<void> {
    const { members, proxies } = this.group!
    await sleep(strike.atMs)
    const name = 'signal' in strike ? `${strike.signal} ${strike.rank}` : `${strike.fault.what} ${strike.where}`
    this.strikes[name] = (this.strikes[name] ?? 0) + 1
    if ('fault' in strike) {
      const proxy = proxies.get(strike.where)!
      proxy.begin(strike.fault)
      await sleep(strike.lastsMs)
      proxy.heal()
      return
    }
    const member = members[strike.rank]!
    if (strike.signal === 'SIGKILL') {
      await member.kill()
      return
    }
    if (member.isGone) return
    member.stop()
    await sleep(strike.lastsMs)
    member.goOn()
  }

  /** Everybody is there, knows everybody, and has nothing under way. */
  private async heal({ isRestarted, strikes, joining }: Round): Promise<void> {
    const group = this.group!
    group.heal()
    for (const member of group.members) {
      if (!member.isKilled && member.isGone)
        throw new Error(`rank ${member.rank} has ended by itself (${member.code}): ${member.complaints}`)
      checkComplaints(member)
    }
    if (isRestarted || (group.endsWithRank0 && group.members[0]!.isGone)) {
      await this.startAnew()
      return
    }
    const { graceMs } = this.connection
    // Who is given up for what has been is so by then. It is waited for half of `graceMs`, and may dial just before the fault is over and then not before that time is.
    const untilGivenUp = async (by: readonly Strike[]): Promise<void> => {
      if (by.some((strike) => 'lastsMs' in strike && strike.lastsMs > graceMs / 4)) await sleep(graceMs + LINGER_MS)
    }
    await untilGivenUp(strikes)
    for (let tries = 0; tries < RANKS; tries++) {
      const lost = await this.lost()
      if (lost.length === 0) return
      // Where nobody serves the store, one that was given up may be rank 0 itself, and of several that end at once nobody may be left who notices.
      if (!group.endsWithRank0 && (this.isRank0GivenUp || lost.length > 1)) break
      await Promise.all(lost.map((rank) => group.members[rank]!.kill()))
      const obstacle = joining === null || tries > 0 ? null : this.strike(joining)
      // Together: a new process waits until all ranks are there.
      const ends = await Promise.allSettled(lost.map((rank) => this.restart(rank)))
      await obstacle
      for (const [i, end] of ends.entries()) {
        if (end.status === 'rejected') await this.checkUnjoined(group.members[lost[i]!]!, end.reason, obstacle !== null)
      }
      // It may have struck those that were there, too.
      if (obstacle !== null) await untilGivenUp([joining!])
    }
    await this.startAnew()
  }

  /** Who could not join says why, and ends. */
  private async checkUnjoined(member: FireMember, reason: unknown, hadObstacle: boolean): Promise<void> {
    if (!hadObstacle || !(reason instanceof MemberFailed) || reason.failure?.isTyped !== true) throw reason
    this.unjoined[reason.failure.code] = (this.unjoined[reason.failure.code] ?? 0) + 1
    await member.end(SETTLE_MS)
    if (member.code !== 0) throw new Error(`rank ${member.rank} could not join, and did not end (${member.code})`)
    checkComplaints(member)
  }

  private async startAnew(): Promise<void> {
    await this.group!.discard()
    await this.begin()
  }

  private async restart(rank: number): Promise<void> {
    this.counts.restarted++
    this.isWhole = false
    await this.group!.restart(rank)
  }

  /** The ranks that have ended, and those that do not know, or are not known by, another one that lives: they come again, as new processes. Rank 0 never. */
  private async lost(): Promise<readonly number[]> {
    const { members } = this.group!
    const dead = members.filter(({ isGone }) => isGone).map(({ rank }) => rank)
    const living = members.filter(({ isGone }) => !isGone)
    const untilMs = performance.now() + SETTLE_MS
    // What is over is over for all when who serves the store has found it.
    const soonMs = performance.now() + this.connection.graceMs + this.connection.deadMs
    for (;;) {
      const looks = await Promise.all(living.map((member) => member.look(LOOK_MS)))
      const estranged = looks.flatMap(({ workers }, from) =>
        living.filter(({ id, rank }) => workers[`worker${rank}`] !== id).map(({ rank }) => Math.max(living[from]!.rank, rank)),
      )
      this.isRank0GivenUp = estranged.length > 0 && looks.some(({ workers }) => workers.worker0 !== members[0]!.id)
      const isBusy = looks.some(({ workers: _, ...counts }) => Object.values(counts).some((count) => count > 0))
      const nowMs = performance.now()
      if ((estranged.length === 0 && !isBusy) || (estranged.length > 0 && nowMs > soonMs)) return [...new Set([...dead, ...estranged])]
      if (nowMs > untilMs) throw new Error(`left behind: ${JSON.stringify(looks)}`)
      await sleep(20)
    }
  }
}

function checkComplaints({ rank, complaints }: FireMember): void {
  if (complaints !== '') throw new Error(`rank ${rank} complains: ${complaints}`)
}

const describe = ({ strikes }: Round): string => JSON.stringify(strikes)

const sleep = (delayMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, delayMs))
