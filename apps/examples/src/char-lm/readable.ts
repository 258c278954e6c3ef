/** Sampled text as it can be shown on a terminal: line by line, long lines folded, nothing that moves the cursor or cannot be seen. */

/** With the margin, within 80 columns. */
const WIDTH = 76
const MARGIN = '  │ '
/** Lines of a sample shown at most: an untrained model writes many line breaks. */
const LINES_MAX = 24

/** Every line after a margin; tabs become an arrow and a space, other control characters their code. */
export function readable(text: string): string {
  const lines = text.split('\n').flatMap((line) => fold(visible(line)))
  const shown = lines.slice(0, LINES_MAX).map((line) => `${MARGIN}${line}`.trimEnd())
  if (lines.length > LINES_MAX) shown.push(`${MARGIN}… (${lines.length - LINES_MAX} lines more)`)
  return shown.join('\n')
}

function visible(line: string): string {
  return line
    .replace(/\r$/, '')
    .replaceAll('\t', '→ ')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`)
}

function fold(line: string): string[] {
  const characters = Array.from(line)
  const pieces: string[] = []
  for (let at = 0; at === 0 || at < characters.length; at += WIDTH) pieces.push(characters.slice(at, at + WIDTH).join(''))
  return pieces
}
