/**
 * Links and anchors of a built site that lead nowhere, found in its HTML and in its pages as text: VitePress looks at pages, and not at anchors, pictures or what a theme adds.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { walk } from '../../scripts/setup.mjs'

/** In Markdown without code; of `[a](b)` and `![a](b)` the target. */
const LINK = /\]\(([^)\s]+)\)/g
const ATTRIBUTE = /\s(href|src|id)="([^"]*)"/g

/** As 'guide/launching.html → ../overview.html#gone'. */
export function deadLinks(folder) {
  const pages = new Map()
  for (const { path } of walk(folder)) {
    if (!path.endsWith('.html')) continue
    const [ids, links] = [new Set(), new Set()]
    for (const [, name, value] of readFileSync(path, 'utf8')
      .replaceAll(/<script[\s\S]*?<\/script>/g, '')
      .matchAll(ATTRIBUTE)) {
      if (name === 'id') ids.add(unescaped(value))
      else if (!/^([a-z]+:|\/\/)/.test(value)) links.add(unescaped(value))
    }
    pages.set(path.slice(folder.length + 1).replaceAll('\\', '/'), { ids, links })
  }
  for (const { path } of walk(folder)) {
    if (!/\.(md|txt)$/.test(path)) continue
    const page = path.slice(folder.length + 1).replaceAll('\\', '/')
    // Its anchors are those of its HTML.
    const ids = pages.get(page.replace(/\.md$/, '.html'))?.ids ?? new Set()
    pages.set(page, { ids, links: new Set(linksOfText(readFileSync(path, 'utf8'))) })
  }
  return [...pages].flatMap(([page, { links }]) => [...links].filter((link) => !leads(page, link)).map((link) => `${page} → ${link}`))

  function leads(page, link) {
    const [address, anchor = ''] = link.split('#')
    let target = address === '' ? page : posix.join(address.startsWith('/') ? '' : posix.dirname(page), address.split('?')[0])
    target = target.replace(/^\//, '')
    if (target === '' || target === '.' || target.endsWith('/')) target = posix.join(target, 'index.html')
    if (!pages.has(target)) return existsSync(join(folder, target)) && statSync(join(folder, target)).isFile() && anchor === ''
    return anchor === '' || pages.get(target).ids.has(decodeURIComponent(anchor))
  }
}

function linksOfText(text) {
  const prose = text.replaceAll(/^ *(`{3,}|~{3,})[\s\S]*?^ *\1$/gm, '').replaceAll(/`[^`\n]*`/g, '')
  return [...prose.matchAll(LINK)].map(([, target]) => target).filter((target) => !/^([a-z]+:|\/\/)/.test(target))
}

const unescaped = (text) => text.replaceAll('&amp;', '&').replaceAll('&#39;', "'").replaceAll('&quot;', '"')
