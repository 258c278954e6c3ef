/**
 * Reports to a person who waits for whom in a stuck cluster: what every worker's program and every call that is being served wait for, and
 * the cycles in it. The graph's nodes are activities: a worker's own program, or one call that a worker serves.
 *
 *     worker0's program ──call ask──▶ worker1 serving ask for worker0 ──its turn at Counter──▶ worker1 serving bump for worker2 ──▶ …
 */
import { PostgradError } from '@postgrad/base'
import type { CallKey, Serving, Wait, Waits, WorkerRuntime } from '@postgrad/rpc/internal'

/** A report, for the message and the values of an error. */
export interface WhoWaits {
  /** One line for each thing that is waited for, worker by worker. */
  readonly waits: readonly string[]
  /** Activities that wait for each other, from one back to it. */
  readonly cycles: readonly (readonly string[])[]
  /** Calls that are being served and wait for nothing of this cluster. */
  readonly stuck: readonly string[]
  /** Workers that have crashed. */
  readonly crashed: readonly string[]
}

/** How many lines of each kind a message holds. */
const LINES_MAX = 40

/** A cluster's waits at one moment; made into a report only if somebody asks. */
export type WaitsNow = readonly (Waits & { readonly worker: WorkerRuntime })[]

export function waitsNow(runtimes: readonly WorkerRuntime[]): WaitsNow {
  return runtimes.map((worker) => ({ worker, ...worker.waits() }))
}

export function whoWaits(now: WaitsNow, crashed: readonly string[] = []): WhoWaits {
  const graph = new Graph(now)
  return { waits: graph.lines, cycles: graph.cycles(), stuck: graph.stuck(), crashed }
}

/** Nothing if nobody waits. */
export function whoWaitsText({ waits, cycles, stuck, crashed }: WhoWaits): string {
  const parts: string[] = []
  if (waits.length > 0) parts.push('Who waits for whom:', ...clipped(waits))
  if (stuck.length > 0)
    parts.push('Nothing here can end these; each waits for a promise that nobody settles, or for something real:', ...clipped(stuck))
  for (const cycle of cycles.slice(0, LINES_MAX)) parts.push(`Cycle: ${cycle.join(' → ')}`)
  if (crashed.length > 0) parts.push(`Crashed: ${crashed.join(', ')}.`)
  return parts.join('\n')
}

/** The error of a stuck run, with who waited for whom in its message and its values. */
export function withWaits(error: PostgradError, waits: WhoWaits): PostgradError {
  const { code, message, remedy = '', values, op } = error
  const text = whoWaitsText(waits)
  const plain = message.slice(`${op}: `.length).replace(` ${remedy}`, '')
  return new PostgradError(code, {
    op,
    message: text === '' ? plain : `${plain}\n${text}\n`,
    remedy,
    values: { ...values, ...waits },
  })
}

function clipped(lines: readonly string[]): string[] {
  const rest = lines.length - LINES_MAX
  return [...lines.slice(0, LINES_MAX).map((line) => `  ${line}`), ...(rest > 0 ? [`  … and ${rest} more`] : [])]
}

class Graph {
  readonly lines: string[] = []
  /** By activity: those that it waits for. */
  private readonly edges = new Map<string, Set<string>>()
  private readonly names = new Map<string, string>()
  private readonly served: { readonly id: string; readonly worker: WorkerRuntime; readonly call: Serving }[] = []
  /** Each call's function, from its caller; by the callee's activity. */
  private readonly functions = new Map<string, string>()

  constructor(all: WaitsNow) {
    for (const { worker, waits, serving } of all) {
      for (const { kind, what, on, requestId } of waits) {
        const [to] = on
        if (requestId !== null && to !== undefined) {
          this.functions.set(activity(to.id, { caller: worker.info, requestId }), kind === 'stream' ? `a stream of ${what}` : what)
        }
      }
      for (const call of serving) this.served.push({ id: activity(worker.info.id, call), worker, call })
    }
    for (const { worker, waits } of all) {
      for (const wait of waits) this.addWait(worker, wait)
    }
    for (const { worker, call, id } of this.served) this.addTurn(worker, call, id)
  }

  /** Simple cycles, each once, from its smallest activity on. Those of the shortest ways are found, which is enough to see what is wrong. */
  cycles(): string[][] {
    const found = new Map<string, string[]>()
    for (const start of [...this.edges.keys()].sort()) {
      const way = this.wayBack(start)
      if (way === null) continue
      const key = [...way].sort().join(' ')
      if (!found.has(key)) found.set(key, [...way, start])
    }
    return [...found.values()].map((way) => way.map((id) => this.nameOf(id)))
  }

  stuck(): string[] {
    return this.served.filter(({ id }) => !this.edges.has(id)).map(({ id }) => this.nameOf(id))
  }

  private addWait(worker: WorkerRuntime, { kind, what, on, requestId, rrefId, within }: Wait): void {
    const from = activity(worker.info.id, within)
    const here = this.nameOf(from, worker)
    if (requestId !== null && on[0] !== undefined) {
      const to = activity(on[0].id, { caller: worker.info, requestId })
      const isServed = this.served.some(({ id }) => id === to)
      this.edge(from, [to])
      const where = `worker '${on[0].name}'${isServed ? '' : ', which has not begun it or has ended it'}`
      this.lines.push(`${here} waits for ${kind === 'stream' ? `a stream of ${what}` : what} from ${where}`)
      return
    }
    const makers = rrefId === undefined ? [] : this.served.filter((each) => each.worker === worker && each.call.rrefId === rrefId)
    this.edge(from, [...makers.map(({ id }) => id), ...on.map(({ id }) => activity(id, null))])
    this.lines.push(
      `${here} waits for ${what}${(kind === 'pass' || kind === 'collective') && on.length > 0 ? `, and for ${on.map(({ name }) => name).join(', ')}` : ''}`,
    )
  }

  private addTurn(worker: WorkerRuntime, { turn }: Serving, id: string): void {
    if (turn === null) return
    const holder = activity(worker.info.id, turn.holder)
    this.edge(id, [holder])
    this.lines.push(
      `${this.nameOf(id)} waits for its turn at ${turn.actor}, which ${turn.holder === null ? 'serves its own worker' : `is at it for ${this.nameOf(holder)}`}`,
    )
  }

  private edge(from: string, to: readonly string[]): void {
    const all = this.edges.get(from) ?? new Set()
    for (const each of to) all.add(each)
    this.edges.set(from, all)
  }

  /** The shortest way from an activity back to it; null if there is none. */
  private wayBack(start: string): string[] | null {
    const before = new Map<string, string>()
    const queue = [start]
    for (let at = queue.shift(); at !== undefined; at = queue.shift()) {
      for (const to of this.edges.get(at) ?? []) {
        if (to === start) {
          const way = [at]
          for (let step = at; step !== start; ) {
            step = before.get(step)!
            way.unshift(step)
          }
          return way
        }
        if (before.has(to)) continue
        before.set(to, at)
        queue.push(to)
      }
    }
    return null
  }

  private nameOf(id: string, worker?: WorkerRuntime): string {
    if (worker !== undefined && !this.names.has(id)) this.names.set(id, `${worker.info.name}'s program`)
    const call = this.served.find((each) => each.id === id)
    if (call === undefined) return this.names.get(id) ?? id
    const what = this.functions.get(id) ?? (call.call.rrefId === null ? 'a call' : 'a remote call')
    return `${call.worker.info.name} serving ${what} for ${call.call.caller.name}`
  }
}

/** A worker's program, or one of the calls that it serves. */
function activity(workerId: number, call: CallKey | null): string {
  return call === null ? `${workerId}` : `${workerId}:${call.caller.id}:${call.requestId}`
}
