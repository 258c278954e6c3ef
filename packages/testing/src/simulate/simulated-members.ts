/**
 * Simulated workers as members of a cluster: the host of cluster's `Members`. The controller is one more place in the world, linked with each worker
 * by a channel of its own, over which it sends what it sends to threads (`MemberWords`). So its words keep their order, and the schedule decides whether they
 * come before or after the workers' messages. No fault rule applies to them: a control port loses nothing.
 */
import { Future, PostgradError, type WorkerId } from '@postgrad/base'
import { TextDecoder, TextEncoder, workerDied } from '@postgrad/base/internal'
import {
  type Birth,
  type Change,
  type MemberControl,
  Members,
  type MembersHost,
  type MemberWords,
  type PeerEnd,
  type PeerInfo,
  PeerLinks,
} from '@postgrad/cluster/internal'
import type { WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import type { SimWorld } from '@postgrad/sim'
import type { Link } from '@postgrad/transport'

/** The controller's name in traces; no worker can be called so. */
export const CONTROLLER = '(controller)'

/** Ends of links travel with their frame, as ports do. */
type Words = MemberWords<PeerInfo>
type Said = { [Word in keyof Words]: readonly [word: Word, args: Words[Word]] }[keyof Words]
/** A frame of a control channel: words with their number, or the number alone, which answers them. */
type ControlFrame = readonly [number: number, said?: Said]

/** For a reader of the trace. */
export function controlText(header: Uint8Array): string {
  const [, said] = decode(header)
  if (said === undefined) return 'done'
  if (said[0] !== 'connect') return said[0]
  const [peers, gone] = said[1]
  const named = (verb: string) => (info: WorkerInfo) => `${verb} ${info.name}#${info.id}`
  return [...peers.map(({ info }) => named('connect')(info)), ...gone.map(named('gone'))].join(', ')
}

export class SimulatedMembers implements MembersHost<Link> {
  private readonly members = new Members<Link>(this)
  private readonly world: SimWorld
  private readonly make: (birth: Birth) => WorkerRuntime
  private readonly controls = new Map<WorkerId, SimControl>()
  /** Of each name the latest change. */
  private readonly joins = new Map<string, Promise<unknown>>()
  /** Of each name that a fault rule will bring back, if the program waits for that. */
  private readonly returns = new Map<string, Future<void>>()
  private readonly leaves = new Map<WorkerId, Future<void>>()
  private isLaunched = false

  /** @param make the worker itself, without links */
  constructor(world: SimWorld, make: (birth: Birth) => WorkerRuntime) {
    this.world = world
    this.make = make
  }

  /** The world begins where a `launch` has resolved: nothing is said for it. */
  launch(names: readonly string[]): void {
    void this.members.start(names, { op: 'launch', timeoutMs: 0 })
    this.isLaunched = true
  }

  /** When this returns the worker is there, and has links to all who are members. @throws WORKER_NAME_TAKEN */
  join(name: string): void {
    this.world.touch(CONTROLLER)
    const holder = [...this.controls.values()].find(({ runtime }) => runtime.info.name === name)
    // A caller that wants a dead worker's name has waited for its end.
    if (holder !== undefined && (this.world.isCrashed(name) || holder.runtime.isClosed)) this.members.gone(holder.runtime.info.id)
    const joining = this.members.start([name], { op: 'join', timeoutMs: 0 })
    joining.catch(() => {})
    this.joins.set(name, joining)
    this.returns.get(name)?.resolve()
    this.returns.delete(name)
  }

  /** Resolves when all who were members when it joined can call it. Rejects when it has crashed, now or before that, and no fault rule brings it back. */
  async ready(name: string): Promise<void> {
    this.world.touch(CONTROLLER)
    for (;;) {
      const joined = await Promise.allSettled([this.joins.get(name)])
      if (this.world.isCrashed(name) && this.world.isReturning(name)) await this.nextJoin(name)
      else if (joined[0].status === 'rejected') throw joined[0].reason
      else return
    }
  }

  private nextJoin(name: string): Promise<void> {
    const next = this.returns.get(name) ?? new Future<void>()
    this.returns.set(name, next)
    return next
  }

  /** Resolves when it has ended. While it leaves, each further caller waits with the first, whose `timeoutMs` counts. */
  leave({ id, name }: WorkerInfo, timeoutMs: number): Promise<void> {
    this.world.touch(CONTROLLER)
    const control = this.controls.get(id)
    if (control === undefined) return Promise.resolve()
    if (this.members.roster.newcomer(id) !== null) throw isStarting(name, id)
    let leaving = this.leaves.get(id)
    if (leaving === undefined) {
      leaving = new Future()
      this.leaves.set(id, leaving)
      this.members.depart(id)
      void control.ask(timeoutMs === 0 ? ['close', []] : ['leave', [timeoutMs]])
    }
    return leaving
  }

  // --- what `Members` asks for

  connect(a: WorkerInfo, b: WorkerInfo): readonly [Link, Link] {
    this.revive(a)
    this.revive(b)
    return this.world.linkUnaware(a.name, b.name)
  }

  close(end: Link): void {
    end.close()
  }

  spawn(birth: Birth, peers: readonly PeerEnd<Link>[]): MemberControl<Link> {
    const { id } = birth.worker
    this.revive(birth.worker)
    const runtime = this.make(birth)
    for (const worker of birth.gone) runtime.noteDeath(worker, 'before this worker began')
    const control = new SimControl(this.world, runtime, () => this.members.gone(id))
    this.controls.set(id, control)
    void control.links.connect(peers, [])
    return {
      start: () => (this.isLaunched ? control.ask(['start', []]) : null),
      connect: (others, gone) => control.ask(['connect', [others.map(({ info, isGuest }) => ({ info, isGuest })), gone]], others),
    }
  }

  end(id: WorkerId): void {
    this.world.crash(this.controls.get(id)!.runtime.info.name)
  }

  joined(): void {
    // The test's code continues.
    this.world.touch('')
  }

  ended(id: WorkerId): void {
    this.world.touch('')
    this.controls.delete(id)
    this.leaves.get(id)?.resolve()
    this.leaves.delete(id)
  }

  joinError({ op }: Change, worker: WorkerInfo): PostgradError {
    const death = { worker, cause: 'killed', detail: 'it ended before it had joined' } as const
    return workerDied(op, death, { remedy: 'Expect this where a worker crashes while it joins.' })
  }

  /** A newcomer, whose name may have been another's. */
  private revive({ name, id }: WorkerInfo): void {
    const isNew = !this.controls.has(id) && this.members.roster.standingOf(id) === 'starting'
    if (isNew && this.world.isCrashed(name)) this.world.revive(name)
  }
}

/** The control channel of one worker, both ends. */
class SimControl {
  readonly runtime: WorkerRuntime
  readonly links: PeerLinks<PeerEnd<Link>>
  private readonly here: Link
  private readonly there: Link
  private readonly answers = new Map<number, () => void>()
  private readonly luggage = new Map<number, readonly PeerEnd<Link>[]>()
  private asked = 0

  constructor(world: SimWorld, runtime: WorkerRuntime, onEnd: () => void) {
    this.runtime = runtime
    this.links = new PeerLinks(runtime, ({ end }) => ({ link: end, transport: null }))
    const [here, there] = world.bareLink(CONTROLLER, runtime.info.name)
    this.here = here
    this.there = there
    here.open({ onFrame: ({ header }) => this.answered(decode(header)[0]), onTurnEnd: () => {}, onClose: onEnd })
    there.open({ onFrame: ({ header }) => void this.serve(decode(header)), onTurnEnd: () => {}, onClose: () => {} })
  }

  /** Resolves with the answer. */
  ask(said: Said, luggage: readonly PeerEnd<Link>[] = []): Promise<void> {
    const number = ++this.asked
    this.luggage.set(number, luggage)
    send(this.here, [number, said])
    return new Promise((resolve) => this.answers.set(number, resolve))
  }

  private answered(number: number): void {
    this.answers.get(number)?.()
    this.answers.delete(number)
  }

  /** At the worker. */
  private async serve([number, said]: ControlFrame): Promise<void> {
    const { runtime, links } = this
    const ends = this.luggage.get(number) ?? []
    this.luggage.delete(number)
    if (said?.[0] === 'connect') await runtime.run(() => links.connect(ends, said[1][1]))
    // Frames are JSON, which writes Infinity as null; to `runtime.leave` no limit is 0.
    else if (said?.[0] === 'leave') await runtime.leave({ timeoutMs: said[1][0] ?? 0 }).catch(() => {})
    else if (said?.[0] === 'close') await runtime.close()
    send(this.there, [number])
    // As the thread ends when its runtime has.
    if (said?.[0] === 'leave' || said?.[0] === 'close') this.there.close()
  }
}

function send(link: Link, frame: ControlFrame): void {
  if (!link.closed) link.send({ header: new TextEncoder().encode(JSON.stringify(frame)), segments: [] })
}

function decode(header: Uint8Array): ControlFrame {
  return JSON.parse(new TextDecoder().decode(header)) as ControlFrame
}

function isStarting(name: string, id: WorkerId): PostgradError {
  return new PostgradError('WORKER_NAME_TAKEN', {
    op: 'leave',
    message: `worker '${name}' (id ${id}) is being started`,
    remedy: 'Await sim.ready(name) first.',
    values: { worker: name, workerId: id },
  })
}
