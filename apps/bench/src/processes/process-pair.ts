/**
 * Two processes with a socket between them, as a comparison: one measures, the other answers, this process only says when. `works.ts` has their
 * commands, `ends.ts` connects them. They start when a row first needs them, and sleep while others are measured.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Contestant } from '../row.js'
import { Child } from './child.js'
import { credentialsOf, type Proof } from './proofs.js'
import { type Between, CLUSTER, NAMES, type Over, type PairBoot, type PairCommand, type Sizes } from './works.js'

const ENTRY = new URL('./pair-entry.js', import.meta.url)

interface Pair {
  readonly measures: Child
  readonly answers: Child
  readonly folder: string
}

export class ProcessPair {
  private readonly between: Between
  private readonly over: Over
  private readonly proof: Proof
  private pair: Promise<Pair> | null = null

  constructor(between: Between, over: Over, proof: Proof = 'none') {
    this.between = between
    this.over = over
    this.proof = proof
  }

  /** A message of so many bytes there and one back, n times. */
  roundTrip(sizes: Sizes): Contestant {
    return (n) => this.run({ work: 'roundTrip', n, ...sizes })
  }

  /** n of them, many under way. */
  pipelined(sizes: Sizes): Contestant {
    return (n) => this.run({ work: 'pipelined', n, ...sizes })
  }

  /** n connections, one after another, each with a message there and one back. */
  connect(sizes: Sizes): Contestant {
    return (n) => this.run({ work: 'connect', n, ...sizes })
  }

  async close(): Promise<void> {
    const pair = await this.pair
    this.pair = null
    if (pair === null) return
    await Promise.all([pair.measures.end(), pair.answers.end()])
    rmSync(pair.folder, { recursive: true, force: true })
  }

  private async run(command: PairCommand): Promise<number> {
    this.pair ??= this.start()
    const { measures, answers } = await this.pair
    await answers.ask(command)
    return measures.ask(command)
  }

  private async start(): Promise<Pair> {
    const folder = mkdtempSync(join(tmpdir(), 'postgrad-'))
    const { between, over, proof } = this
    const [own, others] = await credentialsOf(proof, CLUSTER, [NAMES.measures, NAMES.answers])
    const boot = { between, over, folder }
    const answers = new Child(ENTRY)
    const port = await answers.ask({ ...boot, role: 'answers', credentials: others!, port: 0 } satisfies PairBoot)
    const measures = new Child(ENTRY)
    await measures.ask({ ...boot, role: 'measures', credentials: own!, port } satisfies PairBoot)
    return { measures, answers, folder }
  }
}
