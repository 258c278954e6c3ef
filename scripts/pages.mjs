/** The pages that users read, and the programs that they show; for `snippets.mjs`, which runs those. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './setup.mjs'

const PAGES = ['README.md', 'SECURITY.md', 'apps/site/home.md']
const FOLDER = 'docs'
/** Languages of which a block is a program. */
const PROGRAMS = new Set(['ts', 'typescript', 'js', 'javascript', 'mjs', 'python', 'py'])

/** Their paths from the root, in order. */
export function allPages() {
  const inFolder = readdirSync(join(root, FOLDER), { recursive: true })
    .map((path) => `${FOLDER}/${path.replaceAll('\\', '/')}`)
    .filter((path) => path.endsWith('.md') && !/\/(node_modules|\.[^/]+)\//.test(path))
  return [...PAGES, ...inFolder.sort()]
}

/**
 * @param page its path
 * @param text its text
 * @returns each block of code: its language, its text, and the heading above it; `reason` is that of the line before it, `<!-- not run: Python -->`
 */
export function blocksOf(page, text) {
  const blocks = []
  let [open, heading, before] = [null, '', '']
  for (const [index, line] of text.split('\n').entries()) {
    const [, indent, mark, language] = /^( *)(`{3,}|~{3,})([\w-]*)/.exec(line) ?? []
    if (open !== null) {
      if (mark === open.mark && language === '') open = null
      else open.block.text += `${line.slice(0, open.indent).trim()}${line.slice(open.indent)}\n`
      continue
    }
    if (mark !== undefined) {
      const reason = /<!-- not run: (.+?) -->/.exec(before)?.[1] ?? null
      open = { mark, indent: indent.length, block: { page, line: index + 1, language, text: '', heading, reason } }
      blocks.push(open.block)
    } else if (/^#+ /.test(line)) heading = line
    if (line.trim() !== '') before = line
  }
  return blocks
}

/** The blocks that are programs. Those in `ts` are run. */
export function programsOf(page, text) {
  return blocksOf(page, text)
    .filter(({ language }) => PROGRAMS.has(language))
    .map((block) => ({ ...block, isRun: block.language === 'ts' }))
}

const example = '- In a list:\n\n  ~~~ts\n  f(\n    1)\n  ```\n  ~~~\n\n## `A`\n\n<!-- not run: Python -->\n```py\ng()\n```\n'
assert.deepEqual(programsOf('a.md', example), [
  { page: 'a.md', line: 3, language: 'ts', text: 'f(\n  1)\n```\n', heading: '', reason: null, isRun: true },
  { page: 'a.md', line: 12, language: 'py', text: 'g()\n', heading: '## `A`', reason: 'Python', isRun: false },
])
