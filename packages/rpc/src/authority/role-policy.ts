/** An authority made from a table of each role's rights. `common/authority.ts` has what it is asked. */
import { PostgradError } from '@postgrad/base'
import { WHEREIS } from '../actors/actor-register-host.js'
import { LINK_ACTOR, STOP_ACTOR, UNLINK_ACTOR, WATCH_ACTOR } from '../actors/watches.js'
import type { Authority, RequestingPeer, Want } from '../common/authority.js'
import { ARRIVE } from '../groups/gather.js'
import { STORE_CALL } from '../groups/store-host.js'

/** The rights of a role: what its workers may ask of this worker. Anything else fails with NOT_PERMITTED. */
export interface RoleRights {
  /** The exposed functions that the role may call and stream. A method is written `Class.method`, with the name under which the class is exposed. Default none. */
  readonly call?: readonly string[]
  /** The exposed functions, classes and methods that the role may use with `remote`, so that their results stay on this worker. Default none. */
  readonly remote?: readonly string[]
  /** Whether the role may fetch the values of its references (`toHere`). Default false. */
  readonly fetch?: boolean
  /** Whether the role may look actors up by name (`whereis`). Default false. */
  readonly whereis?: boolean
  /** Whether the role may watch actors (`monitor`). Default false. */
  readonly watch?: boolean
  /** Whether the role may stop actors and link them (`stopActor`, `link`, `unlink`). Default false. */
  readonly stop?: boolean
  /** Whether the role may be in process groups, and take part in `shutdown`. Default false: then let its workers join as guests. */
  readonly groups?: boolean
  /** Whether the role may use this worker's store (`storeOn`), and with `init` the group's store (`member.store`) for keys of the program. Default false. */
  readonly stores?: boolean
  /** Whether the role may make contexts and run backward passes. Default false: then it still takes part in passes of other workers that reach it. */
  readonly backward?: boolean
  /** Whether the role may use references that it did not receive from their owner. If true, it may use any value whose id it knows. Default false. */
  readonly references?: boolean
}

type Switch = Exclude<keyof RoleRights, 'call' | 'remote'>

/** Total by name, so that one that is added is listed here. */
const SWITCHES: { readonly [S in Switch]: S } = {
  fetch: 'fetch',
  whereis: 'whereis',
  watch: 'watch',
  stop: 'stop',
  groups: 'groups',
  stores: 'stores',
  backward: 'backward',
  references: 'references',
}

/** The right that a built-in function needs; any other is listed by its name. */
const BEHIND: Readonly<Record<string, Switch>> = {
  [WHEREIS]: 'whereis',
  [WATCH_ACTOR]: 'watch',
  [STOP_ACTOR]: 'stop',
  [LINK_ACTOR]: 'stop',
  [UNLINK_ACTOR]: 'stop',
  [ARRIVE]: 'groups',
  GROUP_UPDATE: 'groups',
  COLLECTIVE: 'groups',
  [STORE_CALL]: 'stores',
  // Called by `rref.backward`.
  'postgrad.rrefBackward': 'backward',
}

/**
 * Makes an `Authority` from a table of roles. `init({ rights })` takes the same table, and calls `rolePolicy` itself.
 *
 * A worker in a listed role may ask only for what its `RoleRights` allow; everything else fails with NOT_PERMITTED. A worker in any other role may ask for
 * everything, as in PyTorch.
 *
 * A listed role may always answer requests, cancel its own calls, acknowledge messages, give references up, and leave. It may also do its part in a
 * distributed pass of another worker that sent it tensors.
 * @throws INVALID_ARGUMENT if a right has an unknown name or a value of the wrong type
 * @example rolePolicy({ observer: { call: ['selectAction', 'Agent.report'], whereis: true } })
 */
export function rolePolicy(roles: Readonly<Record<string, RoleRights>>): Authority {
  return new RolePolicy(new Map(Object.entries(roles).map(([role, rights]) => [role, new Rights(role, rights)])))
}

class RolePolicy implements Authority {
  private readonly roles: ReadonlyMap<string, Rights>

  constructor(roles: ReadonlyMap<string, Rights>) {
    this.roles = roles
  }

  permits({ role }: RequestingPeer, want: Want): boolean {
    return this.roles.get(role)?.permit(want) ?? true
  }

  restricts(role: string): boolean {
    return this.roles.has(role)
  }
}

class Rights {
  private readonly call: ReadonlySet<string>
  private readonly remote: ReadonlySet<string>
  private readonly on: ReadonlySet<Switch>

  constructor(role: string, rights: RoleRights) {
    const { call = [], remote = [], ...switches } = Object(rights) as RoleRights
    this.call = names(role, 'call', call)
    this.remote = names(role, 'remote', remote)
    for (const [key, value] of Object.entries(switches)) {
      if (!Object.hasOwn(SWITCHES, key)) throw wrong(role, `one of call, remote, ${Object.keys(SWITCHES).join(', ')}`, `'${key}'`)
      if (typeof value !== 'boolean' && value !== undefined) throw wrong(role, `true or false as '${key}'`, typeof value)
    }
    this.on = new Set(Object.values(SWITCHES).filter((key) => switches[key] === true))
  }

  permit({ kind, name, isOwn }: Want): boolean {
    switch (kind) {
      case 'call':
      case 'stream':
      case 'method':
        return this.call.has(name)
      case 'remote':
        return this.remote.has(name)
      case 'fetch':
        return this.on.has('fetch') && (isOwn || this.on.has('references'))
      case 'built-in': {
        const behind = Object.hasOwn(BEHIND, name) ? BEHIND[name] : undefined
        return this.call.has(name) || (behind !== undefined && this.on.has(behind))
      }
      case 'context':
        return isOwn || this.on.has('backward')
      case 'reference':
        return this.on.has('references')
      default:
        return kind satisfies never
    }
  }
}

function names(role: string, option: string, list: readonly string[]): ReadonlySet<string> {
  if (!Array.isArray(list) || list.some((name) => typeof name !== 'string' || name === '')) {
    throw wrong(role, `an array of names as '${option}'`, Array.isArray(list) ? 'something else in it' : typeof list)
  }
  return new Set(list)
}

function wrong(role: string, expected: string, got: string): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', {
    op: 'rolePolicy',
    expected,
    got: `${got} for the role '${role}'`,
    remedy: "Write rolePolicy({ observer: { call: ['selectAction', 'Agent.report'] } }).",
    values: { role },
  })
}
