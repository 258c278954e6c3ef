/** Bytes that have gone. Node's own errors about them name neither the argument nor what to do, so who reads a user's bytes asks here first. */

/** Whether the bytes of a buffer or a view are no longer here: a transfer has moved them to another thread, or a resize has cut them off. */
export function isDetached(value: ArrayBufferLike | ArrayBufferView): boolean {
  try {
    if (!ArrayBuffer.isView(value)) new Uint8Array(value)
    else new Uint8Array(value.buffer, value.byteOffset, 0)
    return false
  } catch {
    return true
  }
}

/** For the errors of those who ask. */
export const DETACHED = {
  got: 'a buffer that is detached: its bytes were transferred, or cut off',
  remedy: 'Pass a copy, made before the transfer: buffer.slice().',
} as const
