/**
 * Asks the authority about the messages of other workers: `RULES` says, for each kind of message, what its sender wants. If the worker has an authority,
 * `core/message-path.ts` calls this before it serves anything of a message.
 *
 * When a method call has its turn, two things are not known: whether the value is there yet, and its class. So the authority is asked once more when the
 * method is about to run (`methodRefusal`).
 */
import { type PostgradError, type WorkerId, workerOf } from '@postgrad/base'
import { plainText } from '@postgrad/base/internal'
import { type Message, MessageType } from '@postgrad/wire/internal'
import { type Authority, MEMBER, notPermitted, type Want } from '../common/authority.js'
import { BUILT_IN, METHOD_CALL, STREAM_CALL, VALUE_READY } from '../common/built-in-names.js'
import type { ContextHead, Gate } from '../core/hooks.js'
import { type Incoming, IncomingCall } from '../core/incoming-call.js'
import { nameOf } from '../core/message-path.js'
import type { Peer } from '../core/peer.js'
import type { ServedCall } from '../core/served-call.js'
import type { WorkerCore } from '../core/worker-core.js'
import { GroupWhat } from '../groups/group-protocol.js'

type Rule = (check: AuthorityCheck, message: Message, from: WorkerId) => Want | null

/** The message answers this worker, or is about what the sender owns; each handler checks that. */
const always: Rule = () => null
/** `isOwn`: another's pass or context, in which the sender takes part. */
const ofPass: Rule = (check, message, from) => ({ kind: 'context', name: nameOf(message.type), isOwn: check.takesPart(message, from) })
const function_: Rule = (check, { type, body }, from) =>
  check.functionWant(body[0] as string, body[1], type === MessageType.REMOTE_CALL ? 'remote' : 'call', from)

/** Total by type: a message that is added does not compile without a row. */
const RULES: { readonly [T in MessageType]: Rule } = {
  [MessageType.CALL]: function_,
  [MessageType.REMOTE_CALL]: function_,
  [MessageType.RREF_FETCH]: (check, { body }, from) => ({ kind: 'fetch', name: '', isOwn: check.isHeld(body[0], from) }),
  // Another has handed the reference on, which only the other and the sender know.
  [MessageType.RREF_FORK_REQUEST]: () => ({ kind: 'reference', name: 'RREF_FORK_REQUEST', isOwn: false }),
  [MessageType.RESULT]: always,
  [MessageType.EXCEPTION]: always,
  [MessageType.REMOTE_RET]: always,
  [MessageType.RREF_ACK]: always,
  [MessageType.STREAM_ITEM]: always,
  [MessageType.RREF_USER_DELETE]: always,
  [MessageType.RREF_CHILD_ACCEPT]: always,
  [MessageType.CALL_CANCEL]: always,
  [MessageType.ACTOR_DOWN]: always,
  [MessageType.ACTOR_UNWATCH]: always,
  [MessageType.UNREADABLE]: always,
  [MessageType.PROGRESS]: always,
  [MessageType.DEVICE_MAP]: always,
  // LEAVE and SEEN are about the sender itself.
  [MessageType.GROUP_UPDATE]: (_check, { type, body: [what] }) =>
    what === GroupWhat.LEAVE || what === GroupWhat.SEEN ? null : { kind: 'built-in', name: nameOf(type), isOwn: true },
  // The handler checks that the sender is a member.
  [MessageType.COLLECTIVE]: (_check, { type }) => ({ kind: 'built-in', name: nameOf(type), isOwn: true }),
  [MessageType.PROPAGATE_GRADIENTS]: ofPass,
  [MessageType.PASS_REPORT]: ofPass,
  [MessageType.PASS_ERROR]: ofPass,
  [MessageType.PASS_ABORT]: ofPass,
  [MessageType.PASS_COMMIT]: ofPass,
  [MessageType.CLEANUP_CONTEXT]: ofPass,
  [MessageType.LINEAGE]: ofPass,
}

export class AuthorityCheck implements Gate {
  private readonly core: WorkerCore
  private readonly authority: Authority

  constructor(core: WorkerCore, authority: Authority) {
    this.core = core
    this.authority = authority
  }

  // --- what the path asks

  isRestricted({ role }: Peer): boolean {
    return this.authority.restricts?.(role) ?? role !== MEMBER
  }

  mayBring(message: ContextHead, peer: Peer): boolean {
    if (peer.link === null) return true
    const isOwn = this.takesPart(message, peer.info.id)
    return this.permits(peer, { kind: 'context', name: nameOf(message.type), isOwn })
  }

  refusal({ message, peer, received }: Incoming): PostgradError | null {
    if (peer.link === null) return null
    const from = peer.info.id
    const want = RULES[message.type](this, message, from)
    const refused = want === null ? null : this.refuse(peer, want)
    if (refused !== null) return refused
    if (hasContext(message) && !this.mayBring(message, peer)) {
      return this.refuse(peer, { kind: 'context', name: nameOf(message.type), isOwn: false })
    }
    if (received !== null && !this.core.messages.references.areHeld(received, from)) {
      return this.refuse(peer, { kind: 'reference', name: nameOf(message.type), isOwn: false })
    }
    return null
  }

  /** For a method that is about to run: the class of its value is known by now. */
  methodRefusal(served: ServedCall | null, value: unknown, method: string): PostgradError | null {
    if (!(served instanceof IncomingCall) || served.peer.link === null) return null
    const { peer, type } = served
    const name = `${typeof value === 'object' && value !== null ? this.core.registry.classNameOf(value) : ''}.${method}`
    const refused = this.refuse(peer, { kind: type === MessageType.REMOTE_CALL ? 'remote' : 'method', name, isOwn: true })
    if (refused === null) return null
    served.refuse()
    this.core.letter('invalid', `${nameOf(type)} ${name}: not permitted to the role '${peer.role}'`, peer.info)
    return refused
  }

  // --- what the rules ask

  /** For streams and methods: of the function that is meant. */
  functionWant(name: string, args: unknown, kind: 'call' | 'stream' | 'remote', from: WorkerId): Want | null {
    const list = Array.isArray(args) ? args : []
    if (name === STREAM_CALL) return this.functionWant(plainText(list[0]), list[1], kind === 'remote' ? kind : 'stream', from)
    // Which method of which class is asked when the value is there; for that the caller must have a reference to it, or may do without.
    if (name === METHOD_CALL) {
      return this.isHeld(list[0], from) ? null : { kind: 'reference', name: plainText(list[1]), isOwn: false }
    }
    if (name === VALUE_READY) return { kind: 'fetch', name: '', isOwn: this.isHeld(list[0], from) }
    return { kind: name.startsWith(BUILT_IN) && kind !== 'remote' ? 'built-in' : kind, name, isOwn: true }
  }

  isHeld(reference: unknown, by: WorkerId): boolean {
    return this.core.messages.references.isHeld(reference, by)
  }

  takesPart(message: ContextHead, from: WorkerId): boolean {
    const { context, pass } = message
    if (context === null || workerOf(context) === from || (pass !== null && workerOf(pass) === from)) return false
    return this.core.takesPart(message, from)
  }

  private refuse(peer: Peer, want: Want): PostgradError | null {
    return this.permits(peer, want) ? null : notPermitted(peer, want, this.core.info)
  }

  /** Makes no error, which costs 12 µs: some refusals go to nobody. */
  private permits({ info, role }: Peer, want: Want): boolean {
    try {
      return this.authority.permits({ info, role }, want) === true
    } catch (error) {
      this.core.onBug(error)
      return false
    }
  }
}

const hasContext = ({ context, autogradId, pass, lineage }: Message): boolean =>
  context !== null || autogradId !== null || pass !== null || lineage !== null
