/** Names the messages of a run in its trace and its diagram: by function, request, context and pass, and which answer is to which call. */
import { What } from '@postgrad/process-group/internal'
import { METHOD_CALL, STREAM_CALL } from '@postgrad/rpc/internal'
import type { FrameNamer, TraceEvent } from '@postgrad/sim'
import { SessionKind, sessionHead, sessionPayload } from '@postgrad/transport/internal'
import { type MessageOutline, MessageType, messageOutline } from '@postgrad/wire/internal'
import { CONTROLLER, controlText } from './simulated-members.js'

interface Named {
  readonly label: string
  readonly family: string
}

const UNREADABLE: Named = { label: 'a message that cannot be read', family: 'error' }

export class MessageNamer implements FrameNamer {
  /** Names of requests, by caller, callee and number. */
  private readonly requests = new Map<string, string>()
  private readonly seen = new Set<string>()

  name({ from, to, kind }: TraceEvent, { header }: { readonly header: Uint8Array }): Named {
    if (from === CONTROLLER || to === CONTROLLER) return { label: controlText(header), family: 'other' }
    const frame = { header, segments: [] }
    const head = sessionHead(frame)
    if (head === null) return this.message(from, to, messageOutline(frame))
    if (head.kind === SessionKind.ACK) return { label: 'acknowledgement', family: 'ack' }
    if (head.kind === SessionKind.END) return { label: 'end of the session', family: 'other' }
    const { label, family } = this.message(from, to, messageOutline(sessionPayload(frame)))
    const key = `${head.from}→${head.to} ${head.seq}`
    const isAgain = this.seen.has(key)
    // A delayed frame comes once more, and is the same frame then.
    if (kind !== 'delay') this.seen.add(key)
    return { label: isAgain ? `${label} (again)` : label, family }
  }

  private message(from: string, to: string, outline: MessageOutline | null): Named {
    if (outline === null) return UNREADABLE
    const { type, name, requestId, body, context } = outline
    const within = context === null ? '' : `, context ${idText(context)}`
    const asked = () => this.requests.get(`${to}→${from} ${requestId}`) ?? `request #${requestId}`
    const ask = (verb: string, what: string) => {
      this.requests.set(`${from}→${to} ${requestId}`, `${what} #${requestId}`)
      return `${verb} ${what} #${requestId}${within}`
    }
    switch (type) {
      case MessageType.CALL:
        return { label: ask('call', functionOf(body)), family: 'call' }
      case MessageType.REMOTE_CALL:
        return { label: ask('remote', functionOf(body)), family: 'call' }
      case MessageType.RREF_FETCH:
        return { label: ask('fetch', idText(body[0])), family: 'reference' }
      case MessageType.RESULT:
        return { label: `result of ${asked()}`, family: 'result' }
      case MessageType.EXCEPTION:
        return { label: `error of ${asked()}`, family: 'error' }
      case MessageType.REMOTE_RET:
        return { label: `there is ${asked()}`, family: 'reference' }
      case MessageType.STREAM_ITEM:
        return { label: `item of ${asked()}`, family: 'result' }
      case MessageType.CALL_CANCEL:
        return {
          label: `cancel ${this.requests.get(`${from}→${to} ${String(body[0])}`) ?? `request #${String(body[0])}`}`,
          family: 'error',
        }
      case MessageType.PROPAGATE_GRADIENTS:
        return { label: `gradients of message ${idText(outline.autogradId)}${passText(outline)}`, family: 'gradient' }
      case MessageType.COLLECTIVE:
        return { label: collectiveText(body), family: body[1] === What.failed ? 'error' : 'group' }
      case MessageType.CLEANUP_CONTEXT:
        return { label: `release${within}`.replace(',', ''), family: 'context' }
      default:
        return { label: `${words(name)}${idsOf(outline)}${passText(outline)}`, family: familyOf(name) }
    }
  }
}

const COLLECTIVE_WORDS = {
  [What.part]: '',
  [What.send]: 'send',
  [What.failed]: 'failed',
  [What.left]: 'left the group',
  [What.unknown]: 'no such group',
  [What.taken]: 'taken',
}

/** "allReduce(sum) float32 [3], number 2, step 1" */
function collectiveText([, what, sequence, step, head]: readonly unknown[]): string {
  const word = COLLECTIVE_WORDS[what as keyof typeof COLLECTIVE_WORDS] ?? 'collective'
  return word === '' ? `${String(head)}, number ${String(sequence)}, step ${String(step)}` : `${word} ${String(head)} (${String(sequence)})`
}

/** "add", "method bump", "stream of upTo" */
function functionOf([name, args]: readonly unknown[]): string {
  if (name === STREAM_CALL && Array.isArray(args)) return `stream of ${functionOf(args)}`
  if (name === METHOD_CALL && Array.isArray(args)) return `method ${String(args[1])}`
  return String(name)
}

function familyOf(name: string): string {
  if (name.startsWith('RREF')) return 'reference'
  if (name.startsWith('PASS')) return name === 'PASS_ERROR' || name === 'PASS_ABORT' ? 'error' : 'pass'
  return name.startsWith('GROUP') || name.startsWith('ACTOR') ? 'group' : 'other'
}

/** "RREF_FORK_REQUEST" → "rref fork request" */
function words(name: string): string {
  return name.toLowerCase().replaceAll('_', ' ')
}

function idsOf({ name, body }: MessageOutline): string {
  return name.startsWith('RREF') ? ` ${body.map(idText).join(' ')}` : ''
}

function passText({ pass, context }: MessageOutline): string {
  if (pass !== null) return `, pass ${idText(pass)}`
  return context === null ? '' : `, context ${idText(context)}`
}

/** Worker and counter of an id of 64 bits: "1.7". */
function idText(id: unknown): string {
  if (typeof id !== 'bigint' && typeof id !== 'number') return String(id)
  const value = BigInt(id)
  return `${value >> 48n}.${value & 0xffff_ffff_ffffn}`
}
