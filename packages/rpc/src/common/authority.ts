/**
 * `Authority`, which decides what other workers may do on this one. `authority/role-policy.ts` makes one from a table; `authority/authority-check.ts` asks it about each message of
 * another worker, before it is served. The rules AUT-1 to AUT-9 are in SPEC.md. PyTorch has nothing like it: there every peer may do everything.
 */
import { PostgradError } from '@postgrad/base'
import type { WorkerInfo } from './worker-info.js'

/** The worker that asks for something. */
export interface RequestingPeer {
  /** Its name and id. */
  readonly info: WorkerInfo
  /** The role that its credentials have proven (`setPeerRole`); 'member' without credentials. */
  readonly role: string
}

/** A request of another worker to this one. */
export interface Want {
  /**
   * - `call`, `stream`: run the exposed function `name`.
   * - `remote`: run it, or make an instance of the exposed class, and keep the result here. For a method: keep its result.
   * - `method`: call the method `name`, written `Class.method`, of a value that is here.
   * - `fetch`: get a value that is here, or wait for it.
   * - `built-in`: call a function of the library (`postgrad.whereis`), or send a message about the group (`GROUP_UPDATE`) or in a process group (`COLLECTIVE`).
   * - `context`: take part in a distributed backward pass or its context; `name` is the kind of message.
   * - `reference`: use or hand over a reference that the caller did not receive from the value's owner.
   */
  readonly kind: 'call' | 'stream' | 'remote' | 'method' | 'fetch' | 'built-in' | 'context' | 'reference'
  /** The name of the function, the method with its class, the built-in function, or the message; empty if it has no name. */
  readonly name: string
  /** For `fetch`: the caller has a reference to the value. For `context`: it belongs to another worker and has reached the caller. For `reference` false, otherwise true. */
  readonly isOwn: boolean
}

/** Decides what other workers may ask of this one; see `rolePolicy`. */
export interface Authority {
  /** Called for each message before anything of it is served. It must be fast and without side effects. A throw refuses the message. */
  permits(caller: RequestingPeer, want: Want): boolean
  /**
   * Whether anything is refused to this role. Workers in such a role share one allowance of refused messages, and a message of theirs without any effect
   * counts as refused. Default: true for every role except 'member'.
   */
  restricts?(role: string): boolean
}

/** The role of every peer to which no other was given. */
export const MEMBER = 'member'

/** The error for the caller: what it wanted, and no rights of others. */
export function notPermitted({ info, role }: RequestingPeer, { kind, name }: Pick<Want, 'kind' | 'name'>, self: WorkerInfo): PostgradError {
  return new PostgradError('NOT_PERMITTED', {
    op: kind,
    message: `worker '${info.name}', whose role is '${role}', may not ${WORDS[kind](name)} on worker '${self.name}'`,
    remedy: 'Allow it for that role in the `rights` of the worker that refused, or use credentials of another role; nothing was run.',
    values: { caller: info.name, role, kind, name, worker: self.name },
  })
}

const WORDS: { readonly [K in Want['kind']]: (name: string) => string } = {
  call: (name) => `call '${name}'`,
  stream: (name) => `call '${name}'`,
  remote: (name) => `keep what '${name}' gives`,
  method: (name) => `call '${name}'`,
  fetch: () => 'fetch this value',
  'built-in': (name) => `use '${name}'`,
  context: (name) => `begin a distributed pass or context, or take part in one that has not come to it (${name}),`,
  reference: () => 'use a reference that it was not given by the owner',
}
