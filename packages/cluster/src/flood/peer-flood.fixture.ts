/**
 * A restricted peer floods a member that trains, and in other turns burns as much CPU as the flood took and sends nothing: so both are measured in the same minute on the same machine, and either
 * turn comes first as often. Other load on the machine is taken out: time in which a trainer has waited for a core does not count. The trainers wait for each other in each step, so the longer wait
 * of the two counts.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../init/init.fixture.js'
import type { Flooded, FloodOrder } from './fixtures/flooder.js'
import type { Look } from './fixtures/trainer.js'

const TRAINER = fileURLToPath(new URL('./fixtures/trainer.js', import.meta.url))
const FLOODER = fileURLToPath(new URL('./fixtures/flooder.js', import.meta.url))
/** After each turn: the member finishes what is left of a flood. */
const SETTLE_MS = 500
const START_MS = 30_000
const PATIENCE_MS = 60_000
const WARM_MS_MAX = 20_000
/** A turn is no longer than that, since the machine changes. */
const TURN_MS_MAX = 30_000

export interface KindResult {
  readonly kind: string
  /** Steps a second while it was flooded, by those while it was not. */
  readonly ratio: number
  readonly sent: number
  readonly connections: number
  readonly joins: number
  readonly flooderCpuMs: number
  /** The most that the member has had while it was flooded. */
  readonly rssBytes: number
  readonly heapBytes: number
  readonly said: string
}

export interface FloodResult {
  readonly kinds: readonly KindResult[]
  readonly ratio: number
  readonly rssBytesBefore: number
  /** Of trainers that have ended. */
  readonly deaths: readonly string[]
}

class Process {
  readonly child: ChildProcess
  ended: string | null = null
  private readonly name: string
  private err = ''
  private readonly told: unknown[] = []
  private wake: (() => void) | null = null

  constructor(name: string, path: string, options: object, flags: readonly string[] = []) {
    this.name = name
    // jest's own flags must not reach the child.
    const { NODE_OPTIONS: _, ...env } = process.env
    this.child = fork(path, [JSON.stringify(options)], { env, execArgv: [...flags], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    this.child.stderr?.setEncoding('utf8').on('data', (text) => {
      this.err = (this.err + text).slice(-4000)
    })
    this.child.on('message', (what) => {
      this.told.push(what)
      this.wake?.()
    })
    this.child.on('exit', (code, signal) => {
      this.ended = `${name} ended with ${code ?? signal}: ${this.err}`
      this.wake?.()
    })
  }

  async next<T>(withinMs: number): Promise<T> {
    const limitMs = performance.now() + withinMs
    while (this.told.length === 0) {
      if (this.ended !== null) throw new Error(this.ended)
      const leftMs = limitMs - performance.now()
      if (leftMs <= 0) throw new Error(`${this.name} says nothing within ${withinMs} ms: ${this.err}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    return this.told.shift() as T
  }

  async ask<T>(what: object, withinMs = PATIENCE_MS): Promise<T> {
    this.child.send(what)
    return await this.next<T>(withinMs)
  }
}

interface Turn {
  steps: number
  /** Without the time in which a trainer has waited for a core. */
  fairMs: number
  /** Of the member that is flooded. */
  cpuMs: number
}

const noTurn = (): Turn => ({ steps: 0, fairMs: 0, cpuMs: 0 })

/** @param only kinds whose names have this in them; all if it is empty */
export async function floodPeers(ms: number, only: string, onKind: (line: string) => void): Promise<FloodResult> {
  const folder = mkdtempSync(join(tmpdir(), 'pg-'))
  const keyFile = (name: string, roles: readonly (readonly [string, Uint8Array])[]): string => {
    const path = join(folder, name)
    writeFileSync(path, roles.map(([role, key]) => `${role} = ${Buffer.from(key).toString('base64')}\n`).join(''), { mode: 0o600 })
    return path
  }
  const [member, observer] = [crypto.getRandomValues(new Uint8Array(32)), crypto.getRandomValues(new Uint8Array(32))]
  const memberKeys = keyFile('member', [
    ['member', member],
    ['observer', observer],
  ])
  const observerKeys = keyFile('observer', [['observer', observer]])
  const port = await freePort()
  const options = { initMethod: `tcp://127.0.0.1:${port}`, keyFile: memberKeys }
  const trainers = [0, 1].map(
    (rank) => new Process(`worker${rank}`, TRAINER, { rank, ...options }, rank === 0 ? ['--max-old-space-size=512'] : []),
  )
  const flooder = new Process('flooder', FLOODER, { port, keyFile: observerKeys })
  try {
    const names = await flooder.next<readonly string[]>(START_MS)
    for (const trainer of trainers) await trainer.next(START_MS)
    const [victim] = trainers as [Process, Process]
    const looks = (): Promise<Look[]> => Promise.all(trainers.map((trainer) => trainer.ask<Look>({})))
    const kinds = [...names.entries()].filter(([, name]) => name.includes(only))
    const rounds = 2 * Math.ceil(ms / (4 * TURN_MS_MAX * kinds.length))
    const turnMs = Math.max(500, ms / (2 * rounds * kinds.length) - SETTLE_MS)
    const turn = async (order: Extract<FloodOrder, { ms: number }>, into: Turn): Promise<readonly [Flooded, Look]> => {
      const before = await looks()
      const flooded = await flooder.ask<Flooded>(order, order.ms + PATIENCE_MS)
      await later(SETTLE_MS)
      const after = await looks()
      const wallMs = after[0]!.nowMs - before[0]!.nowMs
      const waitedMs = Math.max(...after.map((look, i) => look.waitedMs - before[i]!.waitedMs))
      into.steps += after[0]!.steps - before[0]!.steps
      into.fairMs += Math.max(wallMs / 10, wallMs - waitedMs)
      into.cpuMs += after[0]!.cpuMs - before[0]!.cpuMs
      return [flooded, after[0]!]
    }
    // Until the code of a step is compiled.
    await later(Math.min(WARM_MS_MAX, ms / 10))
    const [{ rssBytes: rssBytesBefore }] = (await looks()) as [Look, Look]
    const results: KindResult[] = []
    const all = [noTurn(), noTurn()] as const
    for (const [kind, name] of kinds) {
      const [loud, quiet] = [noTurn(), noTurn()]
      const sum = { sent: 0, connections: 0, joins: 0, flooderCpuMs: 0, rssBytes: 0, heapBytes: 0, said: '' }
      for (let round = 0; round < rounds && victim.ended === null; round++) {
        await flooder.ask({ prepare: kind })
        const isQuietFirst = round % 2 === 1
        if (isQuietFirst) await turn({ burnMs: sum.flooderCpuMs / round, ms: turnMs }, quiet)
        const [flooded, look] = await turn({ kind, ms: turnMs }, loud)
        if (!isQuietFirst) await turn({ burnMs: flooded.cpuMs, ms: turnMs }, quiet)
        sum.sent += flooded.sent
        sum.connections += flooded.connections
        sum.joins += flooded.joins
        sum.flooderCpuMs += flooded.cpuMs
        sum.rssBytes = Math.max(sum.rssBytes, look.rssBytes)
        sum.heapBytes = Math.max(sum.heapBytes, look.heapBytes)
        sum.said = flooded.said
      }
      const ratio = ratioOf(loud, quiet)
      results.push({ kind: name, ratio, ...sum })
      for (const [i, one] of [loud, quiet].entries()) {
        all[i]!.steps += one.steps
        all[i]!.fairMs += one.fairMs
        all[i]!.cpuMs += one.cpuMs
      }
      onKind(lineOf(results.at(-1)!, loud, quiet))
    }
    const deaths = trainers.flatMap(({ ended }) => ended ?? [])
    return { kinds: results, ratio: ratioOf(...all), rssBytesBefore, deaths }
  } finally {
    for (const { child } of [...trainers, flooder]) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

function ratioOf(loud: Turn, quiet: Turn): number {
  return loud.steps / loud.fairMs / Math.max(1e-9, quiet.steps / quiet.fairMs)
}

function lineOf(
  { kind, ratio, sent, connections, joins, flooderCpuMs, rssBytes, heapBytes, said }: KindResult,
  loud: Turn,
  quiet: Turn,
): string {
  const mib = (bytes: number): number => Math.round(bytes / 2 ** 20)
  const rate = ({ steps, fairMs }: Turn): string => ((1000 * steps) / fairMs).toFixed(0)
  const cpu = ({ steps, cpuMs }: Turn): string => (cpuMs / steps).toFixed(2)
  return (
    `${ratio.toFixed(2)} of the steps, ${(loud.steps / Math.max(1, quiet.steps)).toFixed(2)} with waits for a core (${rate(loud)} and ${rate(quiet)} a second; of ${cpu(loud)} and ${cpu(quiet)} ms of CPU each): ${kind}: ${sent} sent over ${connections} connections of ${joins} visits in ${Math.round(flooderCpuMs)} ms of ` +
    `CPU; the member had ${mib(rssBytes)} MiB, of them heap ${mib(heapBytes)}${said === '' ? '' : `; ended: ${said}`}`
  )
}
