/**
 * The site for programs that read text: each page as markdown next to its HTML, and `llms.txt`, which lists all pages with a line each. Twenty lines of our own and not
 * vitepress-plugin-llms: the pages are already gathered with their links, and the plugin brings forty packages.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { API_PAGES } from './api/pages.mjs'
import { PAGES, SECTIONS } from './contents.mjs'

/** @param texts address → markdown */
export function writeTexts(texts, folder) {
  for (const [place, text] of texts) {
    mkdirSync(dirname(join(folder, place)), { recursive: true })
    writeFileSync(join(folder, place), text.replace(/^---\n[\s\S]*?\n---\n/, ''))
  }
  const line = (place, title) => `- [${title}](/${place}): ${opening(texts.get(place))}`
  const sections = Object.keys(SECTIONS).map((section) => {
    const pages = PAGES.filter((page) => page.section === section)
    return `## ${section}\n\n${pages.map(({ place, title }) => line(place, title)).join('\n')}\n`
  })
  const api = API_PAGES.map(({ name, title, purpose }) => `- [${title}](/api/${name}.md): ${purpose}`)
  const head =
    '# postgrad\n\n> Distributed autograd for TypeScript on Node. Each page below is markdown; with .html instead of .md it is the page of the site.\n'
  writeFileSync(join(folder, 'llms.txt'), [head, ...sections, `## API reference\n\n${api.join('\n')}\n`].join('\n'))
}

/** The first sentence of a page. */
function opening(text) {
  const paragraph = text.split('\n\n').find((part) => /^[A-Z`*[]/.test(part)) ?? ''
  const plain = paragraph.replaceAll('\n', ' ').replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  return /^.*?[.:](?= |$)/.exec(plain)?.[0] ?? plain
}
