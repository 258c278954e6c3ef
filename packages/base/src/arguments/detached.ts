/** Detects bytes that are gone. Node's errors about them name no argument and no remedy, so code that reads a user's bytes asks first. */
import { types } from 'node:util'

/** %TypedArray%.prototype.keys: unlike the length, which is then 0, it throws where the bytes have gone. */
const { keys } = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array

/** Whether the bytes of a buffer or a view are no longer here: a transfer has moved them to another thread, or a resize has cut them off. */
export function isDetached(value: ArrayBufferLike | ArrayBufferView): boolean {
  try {
    // Nothing is made for the many that have bytes. Of a DataView whose bytes have gone the length throws.
    if (value.byteLength > 0) return false
    if (types.isTypedArray(value)) keys.call(value as Uint8Array)
    else if (!ArrayBuffer.isView(value)) new Uint8Array(value)
    return false
  } catch {
    return true
  }
}

/** For the errors of callers. */
export const DETACHED = {
  got: 'a buffer that is detached: its bytes were transferred, or cut off',
  remedy: 'Pass a copy, made before the transfer: buffer.slice().',
} as const
