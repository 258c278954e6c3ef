/** The pages of errors that come with the package (`docs/errors/*.md`): a section for each code, with its cause, what to do, and a message. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A paragraph, an item of a list, or a block of code. */
export interface Part {
  readonly kind: 'text' | 'item' | 'code'
  /** Without Markdown. */
  readonly text: string
}

export interface Section {
  readonly code: string
  /** What its page is about: `calls`. */
  readonly subject: string
  readonly parts: readonly Part[]
}

const FOLDER = 'docs/errors'
const HEADING = /^### `(\w+)`$/
const FENCE = '~~~'

/** Where the files of this package are, which texts name; null if this installation lacks the pages. */
export function packageFolder(): string | null {
  const folder = PLACES.find((place) => existsSync(place))
  return folder === undefined ? null : join(folder, '../..')
}

/** All sections, by code; none if this installation lacks the pages. */
export function readSections(): ReadonlyMap<string, Section> {
  const folder = PLACES.find((place) => existsSync(place))
  const pages = folder === undefined ? [] : readdirSync(folder).filter((name) => name.endsWith('.md'))
  const sections = pages.flatMap((name) => sectionsOf(name.slice(0, -'.md'.length), readFileSync(join(folder!, name), 'utf8')))
  return new Map(sections.map((section) => [section.code, section]))
}

/** From `dist/cli/explain` of the package, and from `apps/cli/dist/explain` of the repository. */
const PLACES = ['../../..', '../../../..'].map((up) => fileURLToPath(new URL(`${up}/${FOLDER}`, import.meta.url)))

/** The sections of a page. */
export function sectionsOf(subject: string, text: string): readonly Section[] {
  const found: { code: string; lines: string[] }[] = []
  let isInside = false
  for (const line of text.split(/\r?\n/)) {
    const code = HEADING.exec(line)?.[1]
    if (code !== undefined) found.push({ code, lines: [] })
    else if (isInside && !/^#{1,3} /.test(line)) found.at(-1)?.lines.push(line)
    isInside = code !== undefined || (isInside && !/^#{1,3} /.test(line))
  }
  return found.map(({ code, lines }) => ({ code, subject, parts: partsOf(lines) }))
}

function partsOf(lines: readonly string[]): readonly Part[] {
  const parts: Part[] = []
  /** The part that further lines belong to. */
  let kind: Part['kind'] | null = null
  let text: string[] = []
  const begin = (next: Part['kind'] | null, ...first: string[]): void => {
    if (kind !== null) parts.push({ kind, text: kind === 'code' ? text.join('\n') : plain(text.join(' ')) })
    kind = next
    text = first
  }
  for (const line of lines) {
    const inCode = (kind as Part['kind'] | null) === 'code'
    if (line.startsWith(FENCE)) begin(inCode ? null : 'code')
    else if (inCode) text.push(line)
    else if (line.trim() === '' || line.startsWith('<!--')) begin(null)
    else if (line.startsWith('- ')) begin('item', line.slice(2))
    else if (kind === null) begin('text', line)
    else text.push(line.trim())
  }
  begin(null)
  return parts
}

/** Markdown as a terminal shows it: no emphasis, no ticks around code, and next to a link's text its file from the package's folder. */
function plain(text: string): string {
  return text
    .replaceAll(/\[([^\]]*)\]\(([^)]*)\)/g, (_, name: string, target: string) => `${name}${fileOf(target)}`)
    .replaceAll('**', '')
    .replaceAll('`', '')
    .replaceAll(/\*(\S[^*]*)\*/g, '$1')
}

/** Nothing for a link to another section. */
function fileOf(target: string): string {
  return target.startsWith('../') ? ` (${posix.normalize(`${FOLDER}/${target}`)})` : ''
}
