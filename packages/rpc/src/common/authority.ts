/**
 * `Authority`, which decides what other workers may do on this one. `authority/role-policy.ts` makes one from a table; `authority/authority-check.ts` asks it about each message of
 * another worker, before it is served. The rules AUT-1 to AUT-9 are in SPEC.md. PyTorch has nothing like it: there every peer may do everything.
 */
import { PostgradError } from '@postgrad/base'
import type { WorkerInfo } from './worker-info.js'

/** A worker that asks this one for something. */
export interface RequestingPeer {
  /** The worker's name and id. */
  readonly info: WorkerInfo
  /** The role that the worker's credentials have proven; 'member' without credentials. */
  readonly role: string
}

/** A request of another worker, as an `Authority` judges it. */
export interface Want {
  /**
   * The kind of the request, which says what the caller wants. `call`, `stream`: to run the exposed function `name`. `remote`: to run the exposed function or
   * method `name`, or to make an instance of the exposed class `name`, and to keep the result on this worker. `method`: to call the method `name`, written
   * `Class.method`, of a value of this worker. `fetch`: to get a value of this worker. `built-in`: to call a function of the library (`postgrad.whereis`), or to
   * send a message about the group (`GROUP_UPDATE`) or in a process group (`COLLECTIVE`). `context`: to take part in a distributed context or backward pass;
   * `name` is the kind of message. `reference`: to use or hand over a reference that the caller did not receive from the value's owner.
   */
  readonly kind: 'call' | 'stream' | 'remote' | 'method' | 'fetch' | 'built-in' | 'context' | 'reference'
  /** The name of the function, the method with its class, the built-in function, or the message; empty if the request has no name. */
  readonly name: string
  /**
   * For `fetch`: whether this worker gave the caller a reference to the value. For `context`: whether the context belongs to another worker and has reached
   * the caller. For `reference` false, for all other kinds true.
   */
  readonly isOwn: boolean
}

/** Decides what other workers may ask of this worker. `rolePolicy` makes one from a table of roles. */
export interface Authority {
  /** Returns whether `caller` may have `want`. Called for each message before it is served; must be fast and without side effects. A throw refuses the message. */
  permits(caller: RequestingPeer, want: Want): boolean
  /**
   * Returns whether `permits` refuses anything to this role. Without this method: true for every role except 'member'. Workers of a restricted role share one
   * allowance of refused messages, and a message of theirs that has no effect counts as refused.
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
