/**
 * The site for programs that read text: each page as markdown next to its HTML, and `llms.txt`, which lists all pages with a line each. Twenty lines of our own and not
 * vitepress-plugin-llms: the pages are already gathered with their links, and the plugin brings forty packages.
 */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, relative } from 'node:path'
import { walk } from '../../scripts/setup.mjs'
import { API_PAGES } from './api/pages.mjs'
import { PAGES, SECTIONS } from './contents.mjs'

/** The lines above a page, which VitePress reads. */
const FRONT = /^---\n([\s\S]*?)\n---\n/

/**
 * @param texts address → markdown
 * @param pages the folder with the pages and their pictures: Vite renames those, so the texts get them under their own names
 */
export function writeTexts(texts, pages, folder) {
  prove()
  for (const [place, text] of texts) {
    mkdirSync(dirname(join(folder, place)), { recursive: true })
    writeFileSync(join(folder, place), textOf(text))
  }
  for (const { path } of walk(pages)) {
    const place = relative(pages, path)
    if (/(?<!\.dark)\.(svg|png)$/.test(path) && !place.startsWith('public')) cpSync(path, join(folder, place))
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

/** A page without what only its HTML needs: of a picture it has the bright one, and a link leads to the other text. */
function textOf(page) {
  const front = FRONT.exec(page)?.[1] ?? ''
  const top = front.includes('\nhero:\n') ? heroText(front) : ''
  const body = page
    .replace(FRONT, '')
    .replace(/<img class="only-dark"[^>]*>/g, '')
    .replace(/<img class="only-light"[^>]*>/g, (image) => `![${attribute(image, 'alt')}](${attribute(image, 'src')})`)
  return `${top}${body}`.replace(/\]\((\/[^)\s#]*)/g, (_, address) => `](${textAddress(address)}`)
}

function attribute(image, name) {
  const [, value] = new RegExp(`\\s${name}="([^"]*)"`).exec(image) ?? []
  if (value === undefined) throw new Error(`site: a picture without ${name}: ${image}`)
  return value
}

/** '/guide/launching' → '/guide/launching.md' */
const textAddress = (address) => (address.endsWith('/') ? `${address}index.md` : extname(address) === '' ? `${address}.md` : address)

/** The top of the first page, which VitePress draws from its front matter. */
function heroText(front) {
  const value = (key) => {
    const found = new RegExp(`^ +${key}: (.+)$`, 'm').exec(front)?.[1]
    if (found === undefined) throw new Error(`site: the front matter of the first page has no ${key}`)
    return found
  }
  const actions = [...front.matchAll(/^ +text: (.+)\n +link: (.+)$/gm)].map(([, text, link]) => `[${text}](${link})`)
  const features = [...front.matchAll(/^ +- title: (.+)\n +details: (.+)\n +link: (.+)$/gm)]
  const list = features.map(([, title, details, link]) => `- [${title}](${link}): ${details}\n`).join('')
  return `# ${value('name')}: ${value('text')}

${value('tagline')}

![${value('alt')}](${value('light')})

${actions.join(', ')}

${list}`
}

function prove() {
  const front = `---
layout: home
hero:
  name: a
  text: b
  tagline: c.
  image:
    light: /d.svg
    alt: e
  actions:
    - theme: alt
      text: f
      link: /g/
features:
  - title: h
    details: i.
    link: /j
---
`
  const hero = '# a: b\n\nc.\n\n![e](/d.svg)\n\n[f](/g/index.md)\n\n- [h](/j.md): i.\n'
  assert.equal(textOf(`${front}\n[k](/l#m)\n`), `${hero}\n[k](/l.md#m)\n`)
  const [bright, dark] = ['light', 'dark'].map((scheme) => `<img class="only-${scheme}" loading="lazy" src="../n.${scheme}.svg" alt="o">`)
  assert.equal(textOf(`---\ntitle: p\n---\n${bright}${dark}\n`), '![o](../n.light.svg)\n')
}

/** The first sentence of a page. */
function opening(text) {
  const paragraph = text.split('\n\n').find((part) => /^[A-Z`*[]/.test(part)) ?? ''
  const plain = paragraph.replaceAll('\n', ' ').replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  return /^.*?[.:](?= |$)/.exec(plain)?.[0] ?? plain
}
