/** What `postgrad explain` prints. */
import type { Section } from './sections.js'

const WIDTH_MAX = 100
/** Text of a list of codes begins here, unless a code is longer. */
const CODE_WIDTH = 30

/** A section, wrapped to the width of a terminal. */
export function sectionText({ code, parts }: Section, columns: number): string {
  const width = Math.min(columns, WIDTH_MAX)
  const blocks = parts.map(({ kind, text }, i) => {
    const lines =
      kind === 'item'
        ? wrapped(text, width - 2).map((line, at) => `${at === 0 ? '-' : ' '} ${line}`)
        : kind === 'text'
          ? wrapped(text, width)
          : text.split('\n').flatMap((line) => codeLines(line, width - 4).map((one) => `    ${one}`))
    // Items of a list follow each other.
    const isList = kind === 'item' && parts[i + 1]?.kind === 'item'
    return `${lines.join('\n')}\n${isList ? '' : '\n'}`
  })
  return `${`${code}\n\n${blocks.join('')}`.trimEnd()}\n`
}

/** A line for each code: the begin of its cause. */
export function listText(sections: readonly Section[], columns: number): string {
  return [...bySubject(sections)]
    .map(([subject, list]) => `${subject}:\n${list.map((section) => `  ${lineOf(section, columns - 2)}\n`).join('')}`)
    .join('\n')
}

function bySubject(sections: readonly Section[]): ReadonlyMap<string, Section[]> {
  const groups = new Map<string, Section[]>()
  for (const section of sections) groups.set(section.subject, [...(groups.get(section.subject) ?? []), section])
  return groups
}

function lineOf({ code, parts }: Section, width: number): string {
  const line = `${code.padEnd(CODE_WIDTH)} ${parts[0]?.text ?? ''}`
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`
}

/** A line that fits keeps its columns. */
function codeLines(line: string, width: number): readonly string[] {
  return line.length <= width ? [line] : wrapped(line, width)
}

/** Lines of at most `width`, as far as words allow. A text that begins with spaces keeps them. */
function wrapped(text: string, width: number): readonly string[] {
  const indent = /^ */.exec(text)![0]
  const lines: string[] = []
  let line = indent
  for (const word of text.trim().split(/ +/)) {
    if (line.trim() !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = indent
    }
    line += line.trim() === '' ? word : ` ${word}`
  }
  return [...lines, line]
}
