/**
 * Arguments, results and errors as plain bytes for a channel that is not a link (comlink's, a pool's): wire's frames, so that tensors, every
 * structured-clone type and errors with class, code, cause and stack survive. Each end holds one codec, without rpc's extensions: an RRef belongs to workers and the calls between them.
 */
import { PostgradError, type WorkerHop } from '@postgrad/base'
import { plainText } from '@postgrad/base/internal'
import { Codec } from './codec.js'
import type { Message } from './message.js'
import { MessageType } from './message-type.js'
import type { ValueExtension } from './value-tag.js'

/** One message of wire as plain bytes: structured clone carries the header and the segments. */
export interface Payload {
  readonly header: Uint8Array
  readonly segments: readonly Uint8Array[]
}

export class PayloadCodec {
  private readonly codec: Codec

  /**
   * @param worker at which end this is; null is the main thread. Errors that leave a worker name it in their path.
   * @param extensions of the channel, the same at both ends
   */
  constructor(worker: WorkerHop | null, extensions: readonly ValueExtension[] = []) {
    this.codec = new Codec({ extensions, ...(worker === null ? {} : { worker }) })
  }

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
      return this.encode(MessageType.EXCEPTION, [error, false])
    } catch (problem) {
      const text = error instanceof Error ? `${error.name}: ${error.message}` : plainText(error)
      return this.encode(MessageType.EXCEPTION, [
        new PostgradError('REMOTE_EXCEPTION', { op: 'run', message: `${text} (its values could not be sent: ${describe(problem)})` }),
        false,
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
    // A parameter stays one; the result of a computation loses its graph here and is a plain value there.
    outgoing.requiresGrad = outgoing.tensors.map((tensor) => tensor.requiresGrad && tensor.isLeaf)
    const { header, segments } = this.codec.encode(outgoing, null)
    return { header: ownBytes(header), segments: segments.map(ownBytes) }
  }

  /** Parameters may be made on the main thread: leaves that required grad there do so here. */
  private decode(payload: Payload): Message {
    const message = this.codec.decode(payload, null)
    message.tensors.forEach((tensor, i) => {
      if (message.requiresGrad[i]) tensor.requiresGrad_()
    })
    return message
  }
}

/** The buffers of a payload, to be moved instead of cloned: each is its own. */
export function transferables({ header, segments }: Payload): ArrayBuffer[] {
  return [header, ...segments].map((bytes) => bytes.buffer as ArrayBuffer)
}

/** Frames may lie in a shared arena; posting a part of one would clone all of it, neighbours' bytes included. */
function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
}

function describe(problem: unknown): string {
  return plainText(problem)
}
