/**
 * A test controls the network of a simulated cluster: partitions and slow lines that begin and end where the program says so. Rules of the
 * world (`fault-plan.ts`) do so at virtual times; these go before them.
 */
import { PostgradError } from '@postgrad/base'
import type { SimWorld } from '@postgrad/sim/internal'
import { namesOf } from '../faults/fault-plan.js'
import type { FaultRule } from '../faults/message-kind.js'

/** A partition or a slow line, which lasts until `heal` is called. */
export interface Disturbance {
  /** Ends the partition or the slow line. Idempotent. */
  heal(): void
}

/** How slow the line between two workers is: options of `sim.slow`. */
export interface SlowLine {
  /** How long each message takes, in ms of virtual time. Default 0. */
  readonly latencyMs?: number
  /** How many bytes per ms of virtual time each direction of each pair carries. Default: unlimited. */
  readonly bytesPerMs?: number
}

type Names = string | readonly string[]

export class Network {
  private readonly world: SimWorld
  private readonly names: () => readonly string[]
  private readonly standing = new Set<Disturbance>()

  constructor(world: SimWorld, names: () => readonly string[]) {
    this.world = world
    this.names = names
  }

  partition(one: Names, other?: Names): Disturbance {
    this.check('partition', one, other)
    return this.stand('partition', { match: { between: [one, other ?? this.others(one)] }, do: 'drop' })
  }

  slow(one: Names, other: Names | undefined, { latencyMs = 0, bytesPerMs }: SlowLine): Disturbance {
    this.check('slow', one, other)
    const between = [one, other ?? this.others(one)] as const
    return this.stand('slow', { match: { between }, do: 'slow', delayMs: latencyMs, ...(bytesPerMs === undefined ? {} : { bytesPerMs }) })
  }

  heal(): void {
    for (const each of this.standing) each.heal()
  }

  private stand(op: string, rule: FaultRule): Disturbance {
    const { faults } = this.world
    if (faults === null) throw needsSessions(op)
    const remove = faults.add(rule)
    const standing: Disturbance = {
      heal: () => {
        this.standing.delete(standing)
        remove()
      },
    }
    this.standing.add(standing)
    return standing
  }

  private others(side: Names): readonly string[] {
    return this.names().filter((name) => !namesOf(side).includes(name))
  }

  /** @throws INVALID_ARGUMENT */
  private check(op: string, one: Names, other: Names = []): void {
    const known = this.names()
    const unknown = [...namesOf(one), ...namesOf(other)].filter((name) => !known.includes(name))
    if (unknown.length === 0) return
    throw new PostgradError('INVALID_ARGUMENT', {
      op,
      expected: `workers of this simulation: ${known.join(', ')}`,
      got: unknown.join(', '),
      remedy: 'Name each side by its workers; a side that is left out is all the others.',
      values: { unknown },
    })
  }
}

function needsSessions(op: string): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'a simulation with faults',
    got: 'one without, whose links lose nothing',
    remedy: 'Pass { faults: [] } to simulate: links are then sessions, which send again what was lost.',
  })
}
