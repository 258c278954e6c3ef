/**
 * One buffer into which all plain sockets (TCP and Unix) of an exchange read. Without it each read allocates a buffer, 64 KiB that V8 must give and free:
 * of 64 MiB that is half of the receiver's work. Reads are synchronous, so all sockets can share it, and each read overwrites the last: a
 * callback keeps no view of it when it returns. If the place of the next bytes is known, they are read there, and nowhere else.
 *
 * Note [Reading into one buffer]. `net.connect` has an option for it, `onread`; a socket that a server has accepted has none. So `take` sets up both as `onread` sets
 * up the socket's handle. That is Node's own and may change: if a part of it is missing, and for TLS, which allocates by itself, the socket emits 'data' as ever. The
 * tests of SOCK-10 fail on a Node on which plain sockets do that.
 */

import type { Socket } from 'node:net'
import { nextTick } from '@postgrad/base/internal'

/** Node reads so much at once into its own buffers. */
export const NODE_READ_BYTES = 65_536
/** The size of the shared one: more than a Unix socket holds (208 KiB), so that one read takes all of it. A read of less has emptied the socket. */
export const READ_BYTES = 262_144

interface Handle {
  useUserBuffer?(buffer: Uint8Array): void
}

/** Takes the bytes that a socket reads. */
export interface Reads {
  /** Bytes that were read into the shared buffer: another's when this returns, however it does. */
  onBytes(bytes: Buffer): void
  /** Called after each read. @returns the memory for the next bytes; null: unknown, or they are few. Nobody else gets that memory before the next call. */
  nextPlace(): Uint8Array | null
  /** So many bytes were read to that place, all that it has room for or not. */
  onPlaced(bytes: number, isAll: boolean): void
}

export class ReadBuffer {
  /** Memory of its own, made when it is first needed. A handle knows its address alone: the socket, by its field, keeps it alive. */
  private buffer: Buffer | null = null

  /**
   * From now on `reads` gets the socket's bytes, and 'data' is not emitted. `pause` and `resume` are as before.
   * @returns false if this socket can only emit 'data'
   */
  take(socket: Socket, reads: Reads): boolean {
    const handle = (socket as unknown as { _handle?: Handle | null })._handle
    const fields = Object.getOwnPropertySymbols(socket)
    const field = (name: string): symbol | undefined => fields.find(({ description }) => description === name)
    const [bufferField, callbackField, nextField] = [field('kBuffer'), field('kBufferCb'), field('kBufferGen')]
    // Bytes that have come already are in the socket, and would stay.
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

/** If it throws, that is an uncaught exception of the thread all the same; but first the socket reads elsewhere, since the place may have an owner by now. */
function onPlaced(reads: Reads, bytes: number, into: Uint8Array): void {
  try {
    reads.onPlaced(bytes, bytes === into.length)
  } catch (error) {
    nextTick(() => {
      throw error
    })
  }
}
