/**
 * One buffer into which plain sockets, TCP and Unix, read for good. Without it each read brings a buffer of its own, 64 KiB that V8 has to give and
 * free: of 64 MiB that is half of the receiver's work. Reads are synchronous, so all sockets of a thread share one, and what was read is gone
 * with the next: whoever is called keeps nothing of it when it returns. Where it is known to which place the next bytes belong, they are read there, and
 * nowhere else.
 *
 * Note [Reading into one buffer]. `net.connect` has an option for it, `onread`; a socket that a server has accepted has none. So both are told in the way in which
 * `onread` tells the socket's handle. That is Node's own and may change: where a part of it is missing, and for TLS, which allocates by itself, the socket emits
 * 'data' as ever. The tests of SOCK-10 fail on a Node where plain ones do.
 */

import type { Socket } from 'node:net'
import { nextTick } from '@postgrad/base/internal'

/** What Node reads at once into buffers of its own. */
export const NODE_READ_BYTES = 65_536
/** What is read at once into the shared one: more than a Unix socket holds (208 KiB), so that one read takes all of it. A read of less has taken all that there was. */
export const READ_BYTES = 262_144

interface Handle {
  useUserBuffer?(buffer: Uint8Array): void
}

/** Who takes what a socket reads. */
export interface Reads {
  /** Bytes that were read into the shared buffer: another's when this returns, however it does. */
  onBytes(bytes: Buffer): void
  /** Asked after each read: where the next bytes belong; null: it is not known, or they are few. That memory is not given to anybody else before it is asked again. */
  nextPlace(): Uint8Array | null
  /** So many bytes were read to that place, all that it has room for or not. */
  onPlaced(bytes: number, isAll: boolean): void
}

export class ReadBuffer {
  /** Memory of its own, made when it is first needed. A handle knows its address alone: the socket, by its field, keeps it alive. */
  private buffer: Buffer | null = null

  /**
   * From now on what the socket reads is given to `reads`, and not emitted. `pause` and `resume` are as before.
   * @returns false if this socket can only emit 'data'
   */
  take(socket: Socket, reads: Reads): boolean {
    const handle = (socket as unknown as { _handle?: Handle | null })._handle
    const fields = Object.getOwnPropertySymbols(socket)
    const field = (name: string): symbol | undefined => fields.find(({ description }) => description === name)
    const [bufferField, callbackField, nextField] = [field('kBuffer'), field('kBufferCb'), field('kBufferGen')]
    // What has come already is in the socket, and would stay there.
    const isPlain = !('encrypted' in socket) && socket.readableLength === 0
    if (!isPlain || typeof handle?.useUserBuffer !== 'function') return false
    if (bufferField === undefined || callbackField === undefined || nextField === undefined) return false
    this.buffer ??= Buffer.allocUnsafeSlow(READ_BYTES)
    const { buffer } = this
    Object.assign(socket, {
      [bufferField]: buffer,
      [callbackField]: (bytes: number, into: Uint8Array) => {
        if (into !== buffer) onPlaced(reads, bytes, into)
        else reads.onBytes(bytes === READ_BYTES ? buffer : buffer.subarray(0, bytes))
        return true
      },
      [nextField]: () => reads.nextPlace() ?? buffer,
    })
    handle.useUserBuffer(buffer)
    socket.resume()
    return true
  }
}

/** What it throws is an uncaught exception of the thread all the same; but first the socket reads elsewhere, since the place may be somebody's by now. */
function onPlaced(reads: Reads, bytes: number, into: Uint8Array): void {
  try {
    reads.onPlaced(bytes, bytes === into.length)
  } catch (error) {
    nextTick(() => {
      throw error
    })
  }
}
