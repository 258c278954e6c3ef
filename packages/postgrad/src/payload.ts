/**
 * Arguments, results and errors between the main thread and a worker as wire's frames, so that tensors, every structured-clone type and errors
 * with class, code, cause and stack survive comlink, which would lose them. Each end holds one codec, without rpc's extensions: an RRef belongs to
 * workers, the main thread is none.
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import type { Tensor } from '@postgrad/tensor'
import { Codec, type Message, MessageType } from '@postgrad/wire/internal'
import type { Payload } from './protocol.js'

export class PayloadCodec {
  private readonly codec = new Codec()

  /** @throws WIRE_UNSUPPORTED_VALUE with the path of the argument */
  encodeCall(name: string, args: readonly unknown[]): Payload {
    return this.encode(MessageType.CALL, [name, args])
  }

  decodeCall(payload: Payload): { name: string; args: readonly unknown[] } {
    const [name, args] = this.decode(payload).body as [string, readonly unknown[]]
    return { name, args }
  }

  /** A result; what cannot be sent becomes an exception that says why. */
  encodeResult(value: unknown): Payload {
    try {
      return this.encode(MessageType.RESULT, [value])
    } catch (error) {
      return this.encodeError(error)
    }
  }

  /** Never throws: an error that cannot be encoded whole is sent as its text. */
  encodeError(error: unknown): Payload {
    try {
      return this.encode(MessageType.EXCEPTION, [error])
    } catch (problem) {
      const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
      return this.encode(MessageType.EXCEPTION, [
        new PostgradError('REMOTE_EXCEPTION', { op: 'run', message: `${text} (its values could not be sent: ${describe(problem)})` }),
      ])
    }
  }

  /** The value of a RESULT. @throws the error of an EXCEPTION */
  decodeReply(payload: Payload): unknown {
    const message = this.decode(payload)
    if (message.type === MessageType.EXCEPTION) throw message.body[0]
    return message.body[0]
  }

  private encode(type: MessageType, body: readonly unknown[]): Payload {
    const outgoing = this.codec.prepare(type, body, null)
    outgoing.requiresGrad = outgoing.tensors.map((tensor: Tensor) => tensor.requiresGrad)
    return this.codec.encode(outgoing, null)
  }

  /** Tensors arrive as leaves; those that required grad do so again, so that parameters may be made on the main thread. */
  private decode(payload: Payload): Message {
    const message = this.codec.decode(payload, null)
    message.tensors.forEach((tensor, i) => {
      if (message.requiresGrad[i]) tensor.requiresGrad_()
    })
    return message
  }
}

/** The buffers that may move with a payload instead of being cloned: those that it fills alone. */
export function transferables({ header, segments }: Payload): ArrayBuffer[] {
  const own = new Set<ArrayBuffer>()
  for (const bytes of [header, ...segments]) {
    const buffer = bytes.buffer as ArrayBuffer
    if (bytes.byteLength > 0 && bytes.byteLength === buffer.byteLength && Object.prototype.toString.call(buffer) === '[object ArrayBuffer]')
      own.add(buffer)
  }
  return [...own]
}

function describe(problem: unknown): string {
  return isPostgradError(problem) ? problem.message : String(problem)
}
