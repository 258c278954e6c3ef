/**
 * Who may have what done on a worker: what is asked, and of whom. `authority/role-policy.ts` has a ready answer; `authority/authority-check.ts` asks for each message of another
 * worker, before anything comes of it. The rules AUT-1 to AUT-9 are in SPEC.md. PyTorch has nothing like it: there every peer may do everything.
 */
import { PostgradError } from '@postgrad/base'
import type { WorkerInfo } from './worker-info.js'

/** Who wants something. */
export interface RequestingPeer {
  /** Its name and id. */
  readonly info: WorkerInfo
  /** As its credentials have proven it (`setPeerRole`); 'member' where there are none. */
  readonly role: string
}

/** What another worker wants of this one. */
export interface Want {
  /**
   * - `call`, `stream`: run the exposed function `name`.
   * - `remote`: run it, or make an instance of the exposed class, and keep the value here. Of a method: keep its result.
   * - `method`: call the method `name`, written `Class.method`, of a value that is here.
   * - `fetch`: get a value that is here, or wait for it.
   * - `built-in`: what the library itself exposes (`postgrad.whereis`), and words about the group (`GROUP_UPDATE`) or in a process group (`COLLECTIVE`).
   * - `context`: take part in a distributed backward pass or its context; `name` is the kind of message.
   * - `reference`: use or hand over a reference that the worker with the value has not given to the caller itself.
   */
  readonly kind: 'call' | 'stream' | 'remote' | 'method' | 'fetch' | 'built-in' | 'context' | 'reference'
  /** Of a function, a method with its class, a built-in function or a message; empty where nothing has a name. */
  readonly name: string
  /** Of `fetch`: the caller has a reference to the value. Of `context`: it is another worker's, which has come to the caller. Of `reference` false, of others true. */
  readonly isOwn: boolean
}

/** Decides what other workers may have done here; see `rolePolicy`. */
export interface Authority {
  /** Asked in the turn of each message, before anything of it is served. Short, without side effects; a throw means no. */
  permits(caller: RequestingPeer, want: Want): boolean
  /**
   * Whether there is anything that this role may not do. Workers in such a role share one allowance of refused messages, and a message of theirs that comes to nothing counts as
   * refused. Left out: any role but 'member'.
   */
  restricts?(role: string): boolean
}

/** The role of every peer of which nothing else is said. */
export const MEMBER = 'member'

/** For who has asked: what it wanted, and nothing of what others may. */
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
