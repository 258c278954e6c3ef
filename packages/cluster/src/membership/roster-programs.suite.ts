/**
 * Random programs for the roster: joins, restarts, leaves, deaths and late messages, over models of workers and links that follow the rules MEM-n.
 * `roster.test.ts` runs them.
 */
import { isPostgradError, type WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import { Random } from '@postgrad/sim/internal'
import { type Birth, type Command, MAIN_ID, type PeerInfo, Roster } from './roster.js'

const NAMES = ['a', 'b', 'c', 'd']
const EVENTS = 60
const WORKERS_MAX = 7

/** One end of a link. */
interface End {
  readonly of: WorkerId
  readonly to: WorkerId
  other: End
  at: 'controller' | 'on its way' | 'worker' | 'closed'
}

type Word = Command & { readonly do: 'tell' }

interface Model {
  readonly info: WorkerInfo
  readonly birth: Birth | null
  isAlive: boolean
  /** It opens its ends and takes words. */
  isUp: boolean
  /** It was asked to end in peace. */
  isLeaving: boolean
  readonly ends: Map<WorkerId, End>
  /** How often it learned of whose death. */
  readonly heard: Map<WorkerId, number>
  readonly words: { readonly word: Word; readonly ends: readonly End[] }[]
  /** Its messages to the controller, and then its end. */
  readonly answers: (() => readonly Command[])[]
  /** Ends whose other has closed, which it does not know yet. */
  readonly closing: End[]
}

export interface RosterProgram {
  readonly problems: readonly string[]
  readonly counts: Readonly<Record<'joined' | 'restarted' | 'left' | 'died' | 'failed', number>>
}

/** Runs the program of that seed, and says what was wrong when nothing is under way any more. */
export function runRosterProgram(seed: number): RosterProgram {
  const run = new Run(new Random(seed))
  for (let i = 0; i < EVENTS; i++) run.event()
  run.settle()
  return { problems: run.problems.map((problem) => `seed ${seed}: ${problem}`), counts: run.counts }
}

class Run {
  readonly problems: string[] = []
  readonly counts = { joined: 0, restarted: 0, left: 0, died: 0, failed: 0 }
  private readonly roster = new Roster()
  private readonly random: Random
  private readonly models = new Map<WorkerId, Model>()
  /** Ends that nobody has been given. */
  private readonly kept = new Map<string, End>()
  private readonly groups = new Set<number>()
  private lastId = -1
  private isSettling = false

  constructor(random: Random) {
    this.random = random
  }

  event(): void {
    const living = [...this.models.values()].filter(({ isAlive }) => isAlive)
    const workers = living.filter(({ birth }) => birth !== null)
    switch (this.random.below(12)) {
      case 0:
      case 1:
        if (workers.length < WORKERS_MAX) this.join()
        return
      case 2:
        if (workers.length > 0) this.die(this.pick(workers), 'died')
        return
      case 3:
        if (workers.length > 0) this.leave(this.pick(workers))
        return
      case 4:
        if (!this.models.has(MAIN_ID) && this.random.below(4) === 0) this.enter()
        return
      case 5: {
        const newcomers = workers.filter(({ info }) => this.roster.standingOf(info.id) === 'starting')
        if (newcomers.length > 0 && this.random.below(4) === 0) this.do(this.roster.failed(this.pick(newcomers).info.id))
        return
      }
      case 6:
        this.roster.forget(this.pick(NAMES))
        return
      default:
        this.happen()
    }
  }

  /** Lets everything happen that is under way, then looks. */
  settle(): void {
    this.isSettling = true
    while (this.happen());
    for (const model of this.models.values()) this.check(model)
    for (const { of, to } of this.kept.values()) this.problems.push(`the end of ${of} to ${to} was given to nobody and not dropped`)
    for (const group of this.groups) this.problems.push(`group ${group} has neither joined nor failed`)
  }

  // --- what is wanted

  private join(): void {
    const names = NAMES.filter(() => this.random.below(3) === 0)
    if (names.length === 0) return
    const taken = names.filter((name) => this.isTaken(name))
    try {
      const { group, commands } = this.roster.join(names)
      if (taken.length > 0) this.problems.push(`${taken.join()} could be taken twice`)
      this.groups.add(group)
      this.do(commands)
    } catch (error) {
      if (!isPostgradError(error, 'WORKER_NAME_TAKEN')) throw error
      if (taken.length === 0) this.problems.push(`the free names ${names.join()} were refused`)
    }
  }

  private isTaken(name: string): boolean {
    return [...this.models.values()].some(({ info }) => info.name === name && this.roster.standingOf(info.id) !== 'gone')
  }

  private enter(): void {
    const info = { name: 'main', id: MAIN_ID }
    const { group, commands } = this.roster.enter(info)
    this.groups.add(group)
    this.models.set(MAIN_ID, modelOf(info, null))
    this.models.get(MAIN_ID)!.isUp = true
    this.do(commands)
  }

  private leave(model: Model): void {
    if (this.roster.standingOf(model.info.id) !== 'member') return
    this.do(this.roster.leaving(model.info.id))
    model.isLeaving = true
  }

  private die(model: Model, how: 'died' | 'left'): void {
    this.counts[how]++
    model.isAlive = false
    // Its words are lost, and the ends with them close.
    for (const { ends } of model.words.splice(0)) for (const end of ends) this.close(end)
    for (const end of model.ends.values()) this.close(end)
    model.answers.push(() => this.roster.gone(model.info.id))
  }

  // --- what happens by itself

  /** One of the things that may. Returns whether there was one. */
  private happen(): boolean {
    const steps: (() => void)[] = []
    for (const model of this.models.values()) {
      const { isAlive, isUp, words, answers, closing } = model
      if (isAlive && !isUp) steps.push(() => this.boot(model))
      if (isAlive && isUp && words.length > 0) steps.push(() => this.hearWord(model))
      if (isAlive && isUp && closing.length > 0) steps.push(() => this.hearEnd(model))
      if (isAlive && model.isLeaving && this.isSettling) steps.push(() => this.die(model, 'left'))
      if (answers.length > 0) steps.push(() => this.do(answers.shift()!()))
    }
    if (steps.length === 0) return false
    this.pick(steps)()
    return true
  }

  private boot(model: Model): void {
    model.isUp = true
    for (const end of [...model.ends.values()]) {
      if (end.at === 'on its way') end.at = 'worker'
      else model.closing.push(end)
    }
    model.answers.push(() => this.roster.loaded(model.info.id))
  }

  private hearWord(model: Model): void {
    const { word, ends } = model.words.shift()!
    for (const { id } of word.gone) this.hear(model, id)
    for (const end of ends) {
      if (model.ends.has(end.to)) this.problems.push(`${model.info.id} was linked with ${end.to} twice`)
      model.ends.set(end.to, end)
      if (end.at === 'on its way') end.at = 'worker'
      // It notices an end that closed while it was on its way.
      else model.closing.push(end)
    }
    const { group } = word
    if (group !== null) model.answers.push(() => this.roster.answered(model.info.id, group))
  }

  private hearEnd(model: Model): void {
    const end = model.closing.shift()!
    this.hear(model, end.to)
  }

  private hear(model: Model, id: WorkerId): void {
    model.heard.set(id, (model.heard.get(id) ?? 0) + 1)
  }

  private close(end: End): void {
    end.at = 'closed'
    const { other } = end
    if (other.at === 'worker') this.models.get(other.of)!.closing.push(other)
    other.at = 'closed'
  }

  // --- what the roster says

  private do(commands: readonly Command[]): void {
    for (const command of commands) this.doOne(command)
  }

  private doOne(command: Command): void {
    switch (command.do) {
      case 'connect': {
        const [a, b] = [command.a.id, command.b.id]
        const ofA = { of: a, to: b, at: 'controller' } as End
        const ofB: End = { of: b, to: a, at: 'controller', other: ofA }
        ofA.other = ofB
        for (const end of [ofA, ofB]) {
          if (this.kept.has(keyOf(end.of, end.to))) this.problems.push(`${a} and ${b} were linked twice`)
          this.kept.set(keyOf(end.of, end.to), end)
        }
        return
      }
      case 'spawn': {
        const { worker, peers } = command.birth
        if (worker.id <= this.lastId) this.problems.push(`the id ${worker.id} was not new`)
        this.lastId = worker.id
        const model = modelOf(worker, command.birth)
        this.models.set(worker.id, model)
        for (const end of this.give(worker.id, peers)) model.ends.set(end.to, end)
        return
      }
      case 'tell': {
        const model = this.models.get(command.to)!
        for (const { info } of command.peers)
          if (!this.models.get(info.id)!.isUp) this.problems.push(`${command.to} was told of ${info.id}, which was not loaded`)
        const ends = this.give(command.to, command.peers)
        if (model.isAlive) model.words.push({ word: command, ends })
        else for (const end of ends) this.close(end)
        return
      }
      case 'drop':
        for (const key of [keyOf(command.a, command.b), keyOf(command.b, command.a)]) {
          const end = this.kept.get(key)
          this.kept.delete(key)
          if (end !== undefined && end.at !== 'closed') this.close(end)
        }
        return
      case 'end': {
        const model = this.models.get(command.id)!
        if (model.isAlive) this.die(model, 'died')
        return
      }
      case 'joined':
        this.groups.delete(command.group)
        this.counts.joined++
        for (const { former } of command.workers) if (former !== null) this.counts.restarted++
        return
      case 'failed':
        this.groups.delete(command.group)
        this.counts.failed++
        return
      default:
        command satisfies never
    }
  }

  private give(to: WorkerId, peers: readonly PeerInfo[]): End[] {
    return peers.flatMap(({ info }) => {
      const key = keyOf(to, info.id)
      const end = this.kept.get(key)
      this.kept.delete(key)
      if (end === undefined) this.problems.push(`there is no end of ${to} to ${info.id}`)
      else if (end.at === 'controller') end.at = 'on its way'
      return end ?? []
    })
  }

  // --- what must be

  private check(model: Model): void {
    const { info, birth, isAlive, ends, heard } = model
    const { id } = info
    if (!isAlive) return
    const standing = this.roster.standingOf(id)
    if (standing !== 'member') this.problems.push(`${id} lives and is ${standing}`)
    for (const other of this.models.values()) {
      const peer = other.info.id
      if (peer === id) continue
      const end = ends.get(peer)
      const times = heard.get(peer) ?? 0
      if (other.isAlive) {
        if (end?.at !== 'worker' || other.ends.get(id)?.other !== end) this.problems.push(`${id} and ${peer} live and are not linked`)
        if (times > 0) this.problems.push(`${id} takes ${peer} for dead, which lives`)
        if (other.info.name === info.name) this.problems.push(`${id} and ${peer} live under one name`)
        continue
      }
      if (end?.at === 'worker') this.problems.push(`${id} has a link to ${peer}, which is dead`)
      const knewBefore = birth?.gone.some((worker) => worker.id === peer) === true
      const total = times + (knewBefore ? 1 : 0)
      if (total > 1) this.problems.push(`${id} was told ${total} times that ${peer} has died`)
      if (total === 0) this.problems.push(`${id} was not told that ${peer} has died`)
    }
  }

  private pick<T>(list: readonly T[]): T {
    return list[this.random.below(list.length)]!
  }
}

function modelOf(info: WorkerInfo, birth: Birth | null): Model {
  return {
    info,
    birth,
    isAlive: true,
    isUp: false,
    isLeaving: false,
    ends: new Map(),
    heard: new Map(),
    words: [],
    answers: [],
    closing: [],
  }
}

const keyOf = (of: WorkerId, to: WorkerId): string => `${of}>${to}`
