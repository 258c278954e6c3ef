/**
 * Which strings survive UTF-8 as msgpackr writes and reads it: no lone surrogates (they would become U+FFFD), no byte order mark in front
 * (a TextDecoder drops it).
 */

/** Below this length a loop is faster than the call. */
const LOOP_LENGTH_MAX = 24

/** ES2024; Node has it from version 20 on. */
interface WellFormed {
  isWellFormed(): boolean
  toWellFormed(): string
}

export function survivesUtf8(text: string): boolean {
  const { length } = text
  if (length > LOOP_LENGTH_MAX) return text.charCodeAt(0) !== 0xfeff && (text as unknown as WellFormed).isWellFormed()
  for (let i = 0; i < length; i++) {
    if (text.charCodeAt(i) >= 0xd800) return text.charCodeAt(0) !== 0xfeff && (text as unknown as WellFormed).isWellFormed()
  }
  return true
}

/** With U+FFFD for lone surrogates and without a byte order mark: for texts that are only read by people. */
export function wellFormed(text: string): string {
  return ((text.startsWith('\ufeff') ? text.slice(1) : text) as unknown as WellFormed).toWellFormed()
}
