/** An authority made from a table of each role's rights. `common/authority.ts` has what it is asked. */
import { PostgradError } from '@postgrad/base'
import { WHEREIS } from '../actors/actor-register-host.js'
import { LINK_ACTOR, STOP_ACTOR, UNLINK_ACTOR, WATCH_ACTOR } from '../actors/watches.js'
import type { Authority, RequestingPeer, Want } from '../common/authority.js'
import { ARRIVE } from '../groups/gather.js'
import { STORE_CALL } from '../groups/store-host.js'

/** The rights of a role. Anything else is refused. */
export interface RoleRights {
  /** The exposed functions that the role may call and stream, and methods as `Class.method`, with the name under which the class is exposed. Default none. */
  readonly call?: readonly string[]
  /** The exposed functions, classes and methods whose results the role may keep on this worker by `remote`. Default none. */
  readonly remote?: readonly string[]
  /** Whether the role may fetch the values that it has references to. Default false. */
  readonly fetch?: boolean
  /** Whether the role may ask for actors by their names. Default false. */
  readonly whereis?: boolean
  /** Whether the role may watch actors. Default false. */
  readonly watch?: boolean
  /** Whether the role may stop actors and link them: a linked actor ends with another. Default false. */
  readonly stop?: boolean
  /** Whether the role may be in process groups, and end the group with the others. Default false: let such a worker join as a guest. */
  readonly groups?: boolean
  /** Whether the role may use stores; if it joins by `init`, also the group's store (`member.store`), for keys of the program. Default false. */
  readonly stores?: boolean
  /** Whether the role may make contexts and run backward passes. Default false: it still takes part in passes of others that reach it. */
  readonly backward?: boolean
  /** Whether the role may use references that a worker other than the owner handed on to it; if true, it may use any reference whose id it names. Default false. */
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
 * A worker in a named role may do only what is listed for the role; a worker in another role may do everything, as in PyTorch. A named role
 * may always: answer what it is asked, cancel its own calls, say how far it has read, release what it holds, leave, and do its part in the distributed pass
 * of another for which it was sent tensors.
 * @throws INVALID_ARGUMENT
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
