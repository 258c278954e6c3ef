/** The pages that users read, and the programs that they show; for `snippets.mjs`, which runs those. */
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
 * @returns each block of code that is a program: those in `ts` are run; of another, `reason` is that of the line before it, `<!-- not run: Python -->`
 */
export function programsOf(page, text) {
  const lines = text.split('\n')
  const programs = []
  let fence = null
  for (const [index, line] of lines.entries()) {
    const [, mark, language] = /^ *(`{3,}|~{3,})([\w-]*)/.exec(line) ?? []
    if (mark === undefined) continue
    if (fence !== null) {
      if (mark === fence && language === '') fence = null
      continue
    }
    fence = mark
    if (!PROGRAMS.has(language)) continue
    const reason = /<!-- not run: (.+?) -->/.exec(lines.slice(0, index).findLast((one) => one.trim() !== '') ?? '')?.[1] ?? null
    programs.push({ page, line: index + 1, language, isRun: language === 'ts', reason })
  }
  return programs
}
