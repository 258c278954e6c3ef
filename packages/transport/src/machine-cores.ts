/**
 * Whether a core of this machine is free, whoever uses the others: for threads that stay awake for a post from another process, of whose threads the words of
 * this process (`awake-threads.ts`, above) know nothing. Linux tells how many threads run or wait for a core, the asking one included.
 *
 * Measured on two cores: where two of four or eight processes call each other, a call takes 55 µs with it and 150 without. Where all eight call all
 * others at once, awake threads that did not look cost 1.4 times as much as none.
 */
import { readFileSync } from 'node:fs'

/** As often as that it is read: it takes 7 µs. */
const LOOK_US = 1000
const FILE = '/proc/loadavg'

export class MachineCores {
  private readonly cores: number
  private readonly read: () => string
  private lookedUs: number | null = null
  private isFree = true

  /** @param read what `/proc/loadavg` has just now */
  constructor(cores: number, read: () => string = () => readFileSync(FILE, 'utf8')) {
    this.cores = cores
    this.read = read
  }

  /** Not more threads run or wait than there are cores. Where the system does not tell, true. `nowUs` as for `AwakeThreads`. */
  hasCore(nowUs: number): boolean {
    if (this.lookedUs !== null && Math.abs((nowUs - this.lookedUs) | 0) < LOOK_US) return this.isFree
    this.lookedUs = nowUs
    this.isFree = (this.running() ?? 0) <= this.cores
    return this.isFree
  }

  private running(): number | null {
    try {
      // 0.31 0.42 0.40 3/187 12345: three of 187 threads run.
      const counted = /(\d+)\/\d+ /.exec(this.read())
      return counted === null ? null : Number(counted[1])
    } catch {
      return null // no Linux, or it hides that
    }
  }
}
