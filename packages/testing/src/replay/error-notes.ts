/**
 * Adds notes of a run to the error that ended it: in the stack, since test runners print the stack. The message stays as it was, as programs compare it;
 * only under vitest, which prints the message alone, it gets them too.
 */

/** How long what was added to an error is. */
const noted = new WeakMap<object, number>()

/** Adds a note after the message and earlier notes. Non-errors, and frozen errors, stay as they are. */
export function noteInStack(error: unknown, note: string): void {
  if (typeof error !== 'object' || error === null || !Object.isExtensible(error)) return
  const { message, stack } = error as Partial<Error>
  if (typeof message !== 'string' || typeof stack !== 'string') return
  const before = noted.get(error) ?? 0
  noted.set(error, before + note.length)
  const isInBoth = process.env.VITEST !== undefined
  const at = stack.indexOf(message)
  const end = at < 0 ? stack.length : at + message.length + (isInBoth ? 0 : before)
  Object.assign(error, { stack: `${stack.slice(0, end)}${note}${stack.slice(end)}` })
  if (isInBoth) Object.assign(error, { message: `${message}${note}` })
}
