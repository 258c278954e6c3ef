/**
 * Bounds how much of a scarce resource peers use, counted by identity. Budgets nest: a connection, the identity at its other end, that identity's role, the process. A role has half of
 * the process's budget, and an identity half of its role's, so one identity never takes all that another identity of its role needs. Restricted roles together have a quarter of the
 * process's budget, so that they never take what the others need. `store/store-server.ts` and `socket/exchange.ts` have such budgets.
 */
import { strict as assert } from 'node:assert'

/** The peer that uses something. */
export interface Holder {
  /** The subject of its certificate; without one its role and where it comes from. Null: it is counted for the process alone. */
  readonly identity: string | null
  readonly role: string
}

/** The holder for a peer of unknown identity. */
export const NOBODY: Holder = Object.freeze({ identity: null, role: '' })

/** The level without room. */
export interface OverBudget {
  readonly level: 'connection' | 'identity' | 'role' | 'restricted roles' | 'process'
  /** Of that level. */
  readonly limit: number
}

/** For a message. */
export const ofLevel = (level: OverBudget['level']): string => (level === 'restricted roles' ? 'all restricted roles' : `one ${level}`)

interface Level extends OverBudget {
  readonly key: string
}

/** Of one thing: bytes, connections, calls. */
export class Budget {
  readonly limit: number
  private readonly connectionMax: number
  private readonly used = new Map<string, number>()

  /** @param limit of the process */
  constructor(limit: number, connectionMax = Number.POSITIVE_INFINITY) {
    this.limit = limit
    this.connectionMax = connectionMax
  }

  /** The use of one connection of this holder. */
  share(holder: Holder, isRestricted = false): Share {
    return new Share(this.used, levelsOf(holder, isRestricted, this.limit), this.connectionMax)
  }

  /** The use of all. */
  get total(): number {
    return this.used.get('') ?? 0
  }
}

export class Share {
  private readonly all: Map<string, number>
  private readonly levels: readonly Level[]
  private readonly limit: number
  private used = 0

  constructor(all: Map<string, number>, levels: readonly Level[], limit: number) {
    this.all = all
    this.levels = levels
    this.limit = limit
  }

  /** Null: it is taken. Else nothing is, and this is in the way. */
  take(amount: number): OverBudget | null {
    const { all, limit } = this
    if (this.used + amount > limit) return { level: 'connection', limit }
    for (const level of this.levels) if ((all.get(level.key) ?? 0) + amount > level.limit) return level
    this.add(amount)
    return null
  }

  give(amount: number): void {
    assert(amount <= this.used, 'no more is given back than was taken')
    this.add(-amount)
  }

  /** Gives back all that this connection uses. */
  end(): void {
    this.add(-this.used)
  }

  private add(amount: number): void {
    this.used += amount
    for (const { key } of this.levels) {
      const sum = (this.all.get(key) ?? 0) + amount
      if (sum === 0) this.all.delete(key)
      else this.all.set(key, sum)
    }
  }
}

/** However small a budget is, everybody may have one of it. */
const partOf = (limit: number, parts: number): number => Math.max(1, Math.floor(limit / parts))

/** The levels that need room, with the limit of each; the process is the last. */
export function levelsOf({ identity, role }: Holder, isRestricted: boolean, process: number): readonly Level[] {
  const levels: Level[] = []
  const ofRole = partOf(process, isRestricted ? 4 : 2)
  if (identity !== null) {
    levels.push({ key: `identity ${identity}`, level: 'identity', limit: partOf(ofRole, 2) })
    levels.push({ key: `role ${role}`, level: 'role', limit: ofRole })
  }
  if (isRestricted) levels.push({ key: 'restricted', level: 'restricted roles', limit: ofRole })
  levels.push({ key: '', level: 'process', limit: process })
  return levels
}
