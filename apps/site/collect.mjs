/**
 * Gathers the pages of the site in a scratch folder: the repository's documents, with links that lead to each other there, and the reference. Of the links of README and `docs/`,
 * one to a page leads to the page, one to a picture or a manifest to its copy, and any other becomes plain text, as in the tarball (`scripts/pack-docs.mjs`).
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { relink } from '../../scripts/pack-docs.mjs'
import { root } from '../../scripts/setup.mjs'
import { apiReference, missingNames } from './api/reference.mjs'
import { PAGES, placeOnSite } from './contents.mjs'
import { slug } from './slug.mjs'

export const pagesFolder = join(root, 'apps/site/.cache/pages')

/** Files that pages link to, and that are shown or loaded as they are. */
const IS_FILE = /\.(svg|png|sh|ya?ml|csv)$/

export async function collect() {
  const problems = [...unlisted()]
  const places = new Map(PAGES.map(({ file, place }) => [file, place]))
  const texts = new Map([['index.md', read('apps/site/home.md')]])
  for (const { file, place } of PAGES) {
    if (existsSync(join(root, file))) texts.set(place, pageText(file, place, places))
  }
  const reference = await apiReference(errorSections(texts))
  problems.push(...missingNames(reference).map((name) => `the reference lacks ${name}`))
  if (problems.length > 0) throw new Error(problems.join('\n'))
  for (const [place, text] of reference) texts.set(place, text)
  write(texts)
  return texts
}

/** Files of `docs/` that are in no section, and entries without a file. */
function unlisted() {
  const listed = new Set(PAGES.map(({ file }) => file))
  const found = readdirSync(join(root, 'docs'), { recursive: true })
    .map((path) => `docs/${path.replaceAll('\\', '/')}`)
    .filter((path) => path.endsWith('.md'))
  return [
    ...found
      .filter((file) => !listed.has(file))
      .map((file) => `${file} is on no page of the site.\n  Remedy: list it in apps/site/contents.mjs`),
    ...[...listed]
      .filter((file) => !existsSync(join(root, file)))
      .map((file) => `apps/site/contents.mjs lists ${file}, which does not exist`),
  ]
}

function pageText(file, place, places) {
  const text = relink(read(file), file, (target, anchor) => {
    if (places.has(target)) return `${between(place, places.get(target))}${anchor}`
    if (!IS_FILE.test(target) || !existsSync(join(root, target))) return undefined
    return copied(target, place)
  })
  return pictures(text, file, place)
}

/** `<picture>` follows the system's scheme; on the site it follows the switch. */
function pictures(text, file, place) {
  return text.replace(
    /<picture>\s*<source[^>]*srcset="([^"]+)"[^>]*>\s*<img([^>]*?)src="([^"]+)"([^>]*?)\/?>\s*<\/picture>/g,
    (_, dark, before, light, after) => {
      const image = (source, scheme) => {
        const path = copied(join(dirname(file), source).replaceAll('\\', '/'), place)
        return `<img class="only-${scheme}" loading="lazy"${before}src="${path}"${after.trimEnd()}>`
      }
      return `${image(light, 'light')}${image(dark, 'dark')}`
    },
  )
}

/** Files to copy: where to → where from. */
const files = new Map()

/**
 * Lets a file of the repository be copied; its address from this page. Vite gives a picture a name of its own. A manifest or a script ends in `.txt`, so that a browser shows it.
 */
function copied(file, place) {
  const isPicture = /\.(svg|png)$/.test(file)
  const target = isPicture ? placeOnSite(file) : `${placeOnSite(file)}.txt`
  files.set(join(pagesFolder, isPicture ? target : `public/${target}`), join(root, file))
  return isPicture ? between(place, target) : `/${target}`
}

const between = (from, to) => {
  const path = relative(dirname(from), to).replaceAll('\\', '/')
  return path.startsWith('.') ? path : `./${path}`
}

/** Error code → the section that explains it, from a page of the reference. */
function errorSections(texts) {
  const sections = new Map()
  for (const [place, text] of texts) {
    if (!place.startsWith('errors/')) continue
    for (const [, code] of text.matchAll(/^#{2,4} `([A-Z][A-Z0-9_]+)`/gm)) sections.set(code, `../${place}#${slug(code)}`)
  }
  return sections
}

function write(texts) {
  rmSync(pagesFolder, { recursive: true, force: true })
  for (const [place, text] of texts) {
    mkdirSync(dirname(join(pagesFolder, place)), { recursive: true })
    writeFileSync(join(pagesFolder, place), text)
  }
  for (const name of ['two-workers.light.svg', 'two-workers.dark.svg']) {
    files.set(join(pagesFolder, 'public/pictures', name), join(root, 'docs/pictures', name))
  }
  for (const [to, from] of files) {
    mkdirSync(dirname(to), { recursive: true })
    cpSync(from, to)
  }
}

const read = (file) => readFileSync(join(root, file), 'utf8')
