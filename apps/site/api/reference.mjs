/**
 * The API reference: every public name of `postgrad`, as markdown pages. TypeDoc reads the compiled declarations; `pages.mjs` says which name is on which page;
 * `entry.mjs` writes one name. Own pages and not those of typedoc-plugin-markdown: it writes a page for each name, which is a thousand pages to build and to look through, or
 * one for each import path, of which `postgrad/types` would have nine hundred names.
 */
import { join, relative } from 'node:path'
import { Application } from 'typedoc'
import { read, root } from '../../../scripts/setup.mjs'
import { code, entry } from './entry.mjs'
import { API_PAGES, API_SECTIONS } from './pages.mjs'

const LAST = ['postgrad/types']
/** The declarations of each import path, as package.json names them. If a name has several paths, readers see the first. */
export const DOORS = doorsOf(JSON.parse(read(join(root, 'packages/postgrad/package.json'))).exports)

function doorsOf(exports) {
  const files = Object.entries(exports).flatMap(([path, file]) => {
    const [, name] = /^\.\/dist\/(.+)\.js$/.exec(file) ?? []
    return name === undefined ? [] : [[path.replace(/^\./, 'postgrad'), name]]
  })
  const plugin = files.filter(([path]) => path === 'postgrad/plugin')
  const last = files.filter(([path]) => LAST.includes(path))
  return Object.fromEntries([...plugin, ...files.filter((one) => !plugin.includes(one) && !last.includes(one)), ...last])
}

/**
 * @param errorPages code → address of its section on the site
 * @returns address on the site → markdown
 */
export async function apiReference(errorPages) {
  const project = await declarations()
  const names = [...namesOf(project).values()]
  const pages = new Map(API_PAGES.map((page) => [page, []]))
  const places = new Map()
  for (const name of names) {
    const page = pageOf(name)
    pages.get(page).push(name)
    for (const { id } of [name.reflection, name.type ?? name.reflection]) places.set(id, `${page.name}.md#${name.name}`)
  }
  const empty = API_PAGES.filter((page) => pages.get(page).length === 0)
  if (empty.length > 0) throw new Error(`apps/site/api/pages.mjs: no public name is on ${empty.map(({ name }) => name).join(', ')}`)
  const operations = new Map(
    names.filter(({ file }) => file.startsWith('tensor/ops/')).map(({ name, reflection }) => [name, places.get(reflection.id)]),
  )
  const functionOf = (method) => operations.get(method) ?? operations.get(method.replace(/_$/, ''))
  const tools = { functionOf, placeOf: (reflection) => placeOf(places, reflection), errorPages }
  const texts = new Map([['api/index.md', overview(pages, places)]])
  for (const [page, entries] of pages) texts.set(`api/${page.name}.md`, pageText(page, entries, tools))
  return texts
}

async function declarations() {
  const app = await Application.bootstrap({
    entryPoints: Object.values(DOORS).map((door) => join(root, `packages/postgrad/dist/${door}.d.ts`)),
    tsconfig: join(root, 'apps/site/api/tsconfig.json'),
    skipErrorChecking: true,
    excludePrivate: true,
    excludeInternal: true,
    disableGit: true,
    sourceLinkTemplate: '{path}',
    sort: ['source-order'],
    logLevel: 'Error',
  })
  const project = await app.convert()
  if (project === undefined || app.logger.hasErrors()) throw new Error('TypeDoc cannot read the declarations.\n  Remedy: npm run build')
  return project
}

/** { name, doors, file, reflection, type }. A name that several doors have is one; so are a constant and a type of one name, of which `type` is the latter. */
function namesOf(project) {
  const names = new Map()
  for (const [door, file] of Object.entries(DOORS)) {
    const module = project.children.find((child) => child.name === file)
    for (const child of module.children) {
      const reflection = child.variant === 'reference' ? child.getTargetReflectionDeep() : child
      const key = `${fileOf(reflection)} ${child.name}`
      const known = names.get(key) ?? { name: child.name, doors: [], reflection, file: fileOf(reflection) }
      if (!known.doors.includes(door)) known.doors.push(door)
      if (known.reflection !== reflection) {
        const isType = entry.kindOf(reflection) === 'type'
        known.type = isType ? reflection : known.reflection
        known.reflection = isType ? known.reflection : reflection
      }
      names.set(key, known)
    }
  }
  return names
}

/** 'rpc/api/api' */
function fileOf(reflection) {
  const file = (reflection.sources ?? reflection.signatures?.[0]?.sources ?? reflection.children?.[0]?.sources)?.[0]?.fullFileName
  if (file === undefined) throw new Error(`TypeDoc does not say where ${reflection.name} is declared`)
  return relative(join(root, 'packages'), file)
    .replaceAll('\\', '/')
    .replace(/\/dist\//, '/')
    .replace(/\.d\.ts$/, '')
}

/** The page with the longest part of the file's path; the parts for plugins have a page of their own. */
function pageOf({ name, file, doors }) {
  if (doors[0] === 'postgrad/plugin') return API_PAGES.find((page) => page.name === 'plugin')
  let best
  for (const page of API_PAGES) {
    for (const path of page.files) {
      if ((file === path || file.startsWith(`${path}/`)) && !(best?.length >= path.length)) best = { page, length: path.length }
    }
  }
  if (best === undefined) throw new Error(`apps/site/api/pages.mjs: no page has ${file}, where ${name} is declared`)
  return best.page
}

/** The section of a reflection, or of the class around it. */
function placeOf(places, reflection) {
  for (let at = reflection; at !== undefined; at = at.parent) if (places.has(at.id)) return places.get(at.id)
  return undefined
}

const ORDER = ['function', 'class', 'const', 'interface', 'type']

function pageText(page, entries, tools) {
  const rank = ({ reflection }) => ORDER.indexOf(entry.kindOf(reflection))
  const nearest = ({ file }) => page.files.findIndex((path) => file === path || file.startsWith(`${path}/`))
  const sorted = [...entries].sort((a, b) => rank(a) - rank(b) || nearest(a) - nearest(b))
  const isType = (one) => rank(one) >= ORDER.indexOf('interface')
  const [values, types] = [sorted.filter((one) => !isType(one)), sorted.filter(isType)]
  const line = (list, word) =>
    list.length === 0 ? [] : [`**${word}:** ${list.map(({ name }) => `[${code(name)}](#${name})`).join(' · ')}`]
  const head = [
    `# ${page.title} {#page}`,
    `Look here to ${page.purpose}. This page lists ${entries.length} public ${entries.length === 1 ? 'name' : 'names'}.`,
    ...line(values, 'Values'),
    ...line(types, 'Types'),
  ]
  return `${[...head, ...sorted.map((one) => entry(one, tools))].join('\n\n')}\n`
}

/** Every name once, by import path, with the page that describes it. */
function overview(pages, places) {
  const all = [...pages.values()].flat()
  const head = `# API reference

Look up any public name here: its import path, signature, options, errors and an example. If you search for a name with the search field, it is found, too.

`
  const sections = Object.entries(API_SECTIONS).map(([title, list]) => {
    const rows = list.map(([name, text, purpose]) => `| [${text}](${name}.md) | ${purpose} |`)
    return `## ${title}\n\n| page | to |\n|---|---|\n${rows.join('\n')}\n`
  })
  const doors = Object.keys(DOORS).map((door) => {
    const own = all.filter((name) => name.doors.includes(door)).sort((a, b) => a.name.localeCompare(b.name, 'en'))
    // postgrad/types repeats the types of all other paths; only those that no other path has are listed there.
    const listed = door === 'postgrad/types' ? own.filter((name) => name.doors.length === 1) : own
    const links = listed.map(({ name, reflection }) => `[${code(name)}](${places.get(reflection.id)})`)
    const rest = listed.length === own.length ? '' : `\n\n${code(door)} also has the types of all other paths: ${own.length} in all.`
    return `### ${door}\n\n${links.join(' · ')}${rest}\n`
  })
  return `${head}${sections.join('\n')}\n## All names by import path\n\n${doors.join('\n')}`
}

/** The names of `packages/postgrad/api.txt` that no page describes under their import path, as 'postgrad/nn: Linear'. */
export function missingNames(texts) {
  const found = new Set()
  for (const text of texts.values()) {
    for (const [, name, imports] of text.matchAll(/^## .* \{#(\S+)\}\n\n(.*)$/gm)) {
      for (const [, door] of imports.matchAll(/'(postgrad[\w/]*)'/g)) found.add(`${door}: ${name}`)
      found.add(`postgrad/types: ${name}`)
    }
  }
  const missing = []
  let door
  for (const line of read(join(root, 'packages/postgrad/api.txt')).split('\n')) {
    if (line.startsWith('## ')) door = `postgrad${line.slice('## .'.length)}`
    const name = /^(?:const|function|class|type|interface|namespace)(?: and \w+)* (\w+)/.exec(line)?.[1]
    if (name !== undefined && !found.has(`${door}: ${name}`)) missing.push(`${door}: ${name}`)
  }
  return missing
}
