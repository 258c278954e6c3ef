/** Links and anchors of a built site that lead nowhere, found in its HTML: VitePress looks at pages, and not at anchors, pictures or what a theme adds. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { walk } from '../../scripts/setup.mjs'

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

const unescaped = (text) => text.replaceAll('&amp;', '&').replaceAll('&#39;', "'").replaceAll('&quot;', '"')
