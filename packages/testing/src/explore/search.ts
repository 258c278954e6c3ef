/**
 * The search through all orders: it chooses each next run, so that every order is met and few twice. Dynamic partial-order reduction with source sets, sleep
 * sets, and the rest of the row that a run is to take, as in Abdulla, Aronsson, Jonsson and Sagonas, "Source Sets" (JACM 2017). `order.ts` says
 * which steps of a run could have come in the other order; `explore.ts` makes the runs.
 *
 * Note [Explore]: what is searched, why nothing is missed, and what breaks that.
 *
 * A run is a row of steps (`SPEC.md`). Of a state the search keeps only the way back to it: the same steps from the start. A step is named by
 * its choice's label, of which only one step can be next, and steps of one label keep their order. It happens at one worker: it runs that worker's code
 * until nothing more follows without an event. Two steps are *dependent* if they happen at the same worker, or one makes the other possible (a frame's
 * arrival and the step that sent it; a turn and the step that deferred it). Independent steps change different workers' states and append to
 * different queues (a channel has one sender, and its next frame does not depend on later ones; that its receiver closes it counts as
 * putting), so two of them that are next to each other can be exchanged, and both rows lead to the same state. Rows that differ by such exchanges are one order; one run of each is
 * enough.
 *
 * After each run the search looks at every pair of dependent steps of which the second follows the first for that reason alone (`Order.races`): there must be
 * a run in which it comes first. The row that leads there has the steps that are not ordered after the first, and then the second. It is taken from the state before
 * the first, unless a step with which that row can begin is explored from that state anyway. A step that another makes impossible is in no race, so it is tried
 * in the other's place. Steps that have been explored from a state *sleep* in its later branches until something dependent happens: runs that begin with them are
 * known. A run in which only sleeping steps are left is *redundant*. (The paper's wakeup trees would need no such run, but are only right if earlier steps
 * do not change what a step uses. Here they do: a frame may or may not be the one after which the test's own code continues.)
 *
 * A step uses the things that a `StepObserver` sees it use, and these may be more than its own worker:
 *
 * - The code of the test is one more worker, `''`. A step in which it touches a worker, or in which something ends that it runs on a worker, is a step of both.
 * - Time moves only when nothing else is possible, so all steps after a jump are ordered after all before it. Timers of one moment fire in every order; a
 *   timer and a message race only where the timer is due while the message is in flight, which in virtual time takes a delay of 0.
 * - With `arrival: 'alone'` a frame arrives in a turn of its own and a `poll` finds nothing. A link may do both. This leaves out several frames of one
 *   sender that the mailbox takes by lane and not by age, and messages that overtake node tasks of a long pass. With `'seeded'` each of these coins is explored
 *   both ways, and a step that looked whether a frame was there depends on the steps that put frames there.
 * - Draws inside a step (those coins; a turn or a timer of a worker; how much of a dead worker's mail arrives; fault rules with a probability) are not
 *   reduced: every answer is explored, with all that follows, before the step goes to sleep.
 * - A worker that crashes or is linked again is noticed by all: such a step is dependent with every other. So are all arrivals under fault rules, which count.
 *
 * Shared state breaks it of which the world does not know, such as a variable of a module, or of the test's closure, that code of two workers
 * reads and writes. Then two steps look independent and are not, and orders are missed. So when a search has ended some seeds are run, and an order among
 * them that the search has not met is an error. State belongs to actors or to `workerLocal`.
 */
import assert from 'node:assert'
import type { DrawKind, Possible, PossibleChoice, Schedule, StepObserver } from '@postgrad/sim'
import { dependent, Order, type OrderEvent, OrderRecorder, START, type Uses } from './order.js'

/** A step that is to be made, and those after it. */
interface Branch {
  readonly label: string
  readonly uses: Uses
  /** The first answers of its draws. */
  readonly outcomes: readonly number[]
  readonly next: Branch[]
}

/** A step that has been explored from a state, with all that begins with it. */
interface Asleep extends Uses {
  readonly label: string
}

/** A state that the present run has come through, and the step that it took from there. */
class State {
  /** The possible labels. */
  readonly possible: readonly string[]
  readonly asleep: Asleep[]
  /** Not empty; the first one is being explored. */
  readonly tree: Branch[]
  tried = 0
  /** The step as it was seen; null until a run has come through it. */
  event: OrderEvent | null = null
  /** The answers with which its draws begin; of these, as many as `fixed` are explored with this one value here. */
  outcomes: readonly number[]
  private fixed = 0
  /** Answers that are still to be explored. */
  private pending: (readonly number[])[] = []
  private used: { writes: string[]; reads: string[]; all: boolean } = { writes: [], reads: [], all: false }

  constructor(possible: readonly string[], asleep: Asleep[], tree: Branch[]) {
    this.possible = possible
    this.asleep = asleep
    this.tree = tree
    this.outcomes = tree[0]!.outcomes
  }

  /** All that begins with the step has been run: takes other answers of its draws, then other steps. Returns whether there is one. */
  advance(): boolean {
    const { event, used, pending, tree } = this
    assert(event !== null, 'a step was left before it was made')
    used.writes.push(...event.writes)
    used.reads.push(...event.reads)
    used.all ||= event.all
    const { outcomes, counts } = event
    for (let at = this.fixed; at < outcomes.length; at++) {
      for (let other = 0; other < counts[at]!; other++) if (other !== outcomes[at]) pending.push([...outcomes.slice(0, at), other])
    }
    this.event = null
    const answers = pending.pop()
    if (answers !== undefined) {
      this.outcomes = answers
      this.fixed = answers.length
      return true
    }
    this.asleep.push({ label: tree.shift()!.label, ...used })
    this.tried++
    this.used = { writes: [], reads: [], all: false }
    this.fixed = 0
    this.outcomes = tree[0]?.outcomes ?? []
    return tree.length > 0
  }
}

/** A run of the search did not go again as it had gone before. */
export interface Parting {
  /** From 1; 0 is what ran before the first. */
  readonly step: number
  readonly label: string
}

export class Search {
  /** Runs, each another order; runs of an order that had been met; steps that were possible and lead to orders that are met elsewhere. */
  readonly counts = { orders: 0, redundant: 0, pruned: 0 }
  private readonly path: State[] = []
  private readonly met = new Set<string>()
  private begun = false

  /** Whether every order has been run. */
  get exhausted(): boolean {
    return this.begun && this.path.length === 0
  }

  /** Whether a run has had this order. */
  hasMet(fingerprint: string): boolean {
    return this.met.has(fingerprint)
  }

  /** For the next run's world, as schedule and as observer. Not to be called when `exhausted`. */
  start(): SearchRun {
    assert(!this.exhausted, 'the search has ended')
    this.begun = true
    return new SearchRun(this.path)
  }

  /** After a run that came to its end and did not part. */
  finish(run: SearchRun): Order {
    const { path, counts } = this
    run.settle()
    const order = new Order(run.recorder.events)
    const { fingerprint } = order
    if (this.met.has(fingerprint)) counts.redundant++
    else counts.orders++
    this.met.add(fingerprint)
    // Beyond the last state where something was awake the run went by itself.
    const own = run.isRedundant ? new Order(run.recorder.events.slice(0, path.length)) : order
    for (const { first, second } of own.races) this.reverse(own, first, second)
    if (!run.isRedundant) run.tryDisabled([])
    for (let state = path.at(-1); state !== undefined && !state.advance(); state = path.at(-1)) {
      counts.pruned += state.possible.length - state.tried
      path.pop()
    }
    return order
  }

  /** Makes sure that an order is run in which `second` does not come after `first`. */
  private reverse(order: Order, first: number, second: number): void {
    const { events } = order
    const row: Branch[] = []
    const add = ({ label, ...uses }: OrderEvent, outcomes: readonly number[]) => row.push({ label, uses, outcomes, next: [] })
    for (let i = first + 1; i < events.length; i++) if (!order.isBefore(first, i)) add(events[i]!, events[i]!.outcomes)
    // It may draw something else there.
    add(events[second]!, [])
    const { asleep, tree } = this.path[first]!
    if (asleep.some(({ label, ...uses }) => rest(label, uses, row) !== null)) return
    // The first branch is the run's own, which has `first` before `second`.
    insert(tree, row, 1)
  }
}

/**
 * The rest of a row without one of its steps that can as well come first; null if it cannot, or is not in the row. The step may use
 * other things as the next one here than in the run of the row, where it came after steps that are not in the row: both count.
 */
function rest(label: string, uses: Uses, row: readonly Branch[]): readonly Branch[] | null {
  const at = row.findIndex((each) => each.label === label)
  if (at < 0) return null
  for (let i = 0; i < at; i++) if (dependent(uses, row[i]!.uses) || dependent(row[at]!.uses, row[i]!.uses)) return null
  return row.filter((_, i) => i !== at)
}

/** Adds a row to a tree of rows. If a branch is a step with which the row can begin, the rest goes below it, unless it is a leaf. */
function insert(tree: Branch[], row: readonly Branch[], from: number): void {
  for (let i = from; i < tree.length; i++) {
    const branch = tree[i]!
    const left = rest(branch.label, branch.uses, row)
    if (left === null) continue
    if (branch.next.length > 0 && left.length > 0) insert(branch.next, left, 0)
    return
  }
  let at = tree
  for (const branch of row) {
    at.push(branch)
    at = branch.next
  }
}

/** Decides in one run of a search, and listens to it. */
export class SearchRun implements Schedule, StepObserver {
  readonly recorder = new OrderRecorder()
  /** Everything that was possible slept: the run continues, in an order met before. */
  isRedundant = false
  parting: Parting | null = null
  private readonly path: State[]
  /** How many steps have begun, what ran before the first among them. */
  private depth = 1
  private isAsked = false

  constructor(path: State[]) {
    this.path = path
    if (path.length === 0) path.push(new State([START], [], [{ label: START, uses: NOTHING, outcomes: [], next: [] }]))
  }

  next(possible: Possible): number {
    this.isAsked = true
    return this.choose(possible)
  }

  draw(kind: DrawKind, _label: string, count: number, chance: number): number {
    if (isSaid(kind, chance)) return chance >= 1 ? 1 : 0
    const { events } = this.recorder
    const answers = this.isOff ? [] : this.path[this.depth - 1]!.outcomes
    const said = answers[events.at(-1)!.outcomes.length] ?? 0
    const value = said < count ? said : 0
    this.recorder.drew(kind, value, count)
    return value
  }

  begin(choice: PossibleChoice): void {
    if (!this.isAsked) this.choose({ size: 1, get: () => choice })
    this.isAsked = false
    this.recorder.begin(choice)
    this.depth++
  }

  /** The step that was begun last is over. */
  settle(): void {
    const event = this.recorder.events[this.depth - 1]
    if (event === undefined || this.isOff) return
    const state = this.path[this.depth - 1]!
    if (state.event === null) state.event = event
    else if (state.event.hash !== event.hash || state.event.label !== event.label) this.part(this.depth - 1, event.label)
  }

  jump(): void {
    this.recorder.jump()
  }

  cause(step: number): void {
    this.recorder.cause(step)
  }

  touch(name: string): void {
    this.recorder.touch(name)
  }

  touchAll(): void {
    this.recorder.touchAll()
  }

  put(channel: string): void {
    this.recorder.put(channel)
  }

  look(channel: string): void {
    this.recorder.look(channel)
  }

  event(kind: string, from: string, to: string, hash: number): void {
    this.recorder.event(kind, from, to, hash)
  }

  /**
   * A step that the last one has made impossible (a worker crashed, a link was closed, a timer cancelled) is in no race, since it does not happen any
   * more: it is tried in the last one's place.
   */
  tryDisabled(possible: readonly string[]): void {
    const before = this.path.at(-1)
    if (before === undefined) return
    const { asleep, tree } = before
    for (const label of before.possible) {
      if (possible.includes(label) || asleep.some((each) => each.label === label) || tree.some((each) => each.label === label)) continue
      tree.push({ label, uses: NOTHING, outcomes: [], next: [] })
    }
  }

  /** The search has no say any more in what happens in this run. */
  private get isOff(): boolean {
    return this.isRedundant || this.parting !== null
  }

  private part(step: number, label: string): void {
    this.parting ??= { step, label }
  }

  private choose(possible: Possible): number {
    this.settle()
    if (!this.isOff) {
      const index = this.depth < this.path.length ? this.again(possible) : this.onward(possible)
      if (index >= 0) return index
    }
    return oldest(possible, () => true)
  }

  /** The step that was taken here before; −1 where it is not possible. */
  private again(possible: Possible): number {
    const { label } = this.path[this.depth]!.tree[0]!
    const index = indexOf(possible, label)
    if (index < 0) this.part(this.depth, label)
    return index
  }

  /** A step from a state where the search has not been, which is noted; −1 where all that is possible sleeps. */
  private onward(possible: Possible): number {
    const labels = Array.from({ length: possible.size }, (_, i) => possible.get(i).label)
    this.tryDisabled(labels)
    const before = this.path.at(-1)
    const asleep = before?.asleep.filter((each) => !dependent(each, before.event!)) ?? []
    const tree = before === undefined ? [] : before.tree[0]!.next
    // The steps planned here may have become impossible: a draw was answered otherwise than in the run they are from.
    const possibles = tree.filter(({ label }) => indexOf(possible, label) >= 0)
    tree.splice(0, tree.length, ...possibles)
    if (tree.length === 0) {
      const index = oldest(possible, (label) => !asleep.some((each) => each.label === label))
      if (index < 0) {
        this.isRedundant = true
        return -1
      }
      tree.push({ label: possible.get(index).label, uses: NOTHING, outcomes: [], next: [] })
    }
    this.path.push(new State(labels, asleep, tree))
    return indexOf(possible, tree[0]!.label)
  }
}

/** Another schedule's answers; a recorder gets those inside steps, as it gets a search's own. */
export class ObservedSchedule implements Schedule {
  private readonly schedule: Schedule
  private readonly recorder: OrderRecorder

  constructor(schedule: Schedule, recorder: OrderRecorder) {
    this.schedule = schedule
    this.recorder = recorder
  }

  next(possible: Possible): number {
    return this.schedule.next(possible)
  }

  draw(kind: DrawKind, label: string, count: number, chance: number): number {
    const value = this.schedule.draw(kind, label, count, chance)
    if (!isSaid(kind, chance)) this.recorder.drew(kind, value, count)
    return value
  }
}

/** A probability of 0 or 1 asks no question. */
function isSaid(kind: DrawKind, chance: number): boolean {
  return kind === 'fault' && (chance <= 0 || chance >= 1)
}

/** Not known before it has been made. */
const NOTHING: Uses = { writes: [], reads: [], all: false }

function indexOf(possible: Possible, label: string): number {
  for (let i = 0; i < possible.size; i++) if (possible.get(i).label === label) return i
  return -1
}

/** Which of those that may has waited longest; −1 if none. */
function oldest(possible: Possible, may: (label: string) => boolean): number {
  let index = -1
  for (let i = 0; i < possible.size; i++) {
    const { label, since } = possible.get(i)
    if (may(label) && (index < 0 || since < possible.get(index).since)) index = i
  }
  return index
}
