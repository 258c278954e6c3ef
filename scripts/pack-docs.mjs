/**
 * The documents of the tarball: README.md, the documents, pictures and manifests that it leads to, and CHANGELOG.md, each at its own path. A link to
 * anything else of this repository becomes absolute, or plain text as long as package.json names no repository. `pack.mjs` calls it; `pack-check.mjs`
 * asks `deadLinks` whether it was done. The site (`apps/site`) rewrites its links by `relink`, too.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** `[text](target)` and `![text](target)`, with an anchor or without; not where the target has a scheme. */
const LINK = /(!?)\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)/g
const TRAVELS = /\.(md|svg|sh|yaml)$/

/**
 * Copies them from `root` to `stage`.
 * @param repository of package.json, if it names one
 * @returns their paths, for `files` of package.json
 */
export function packDocs(root, stage, repository) {
  const base = (repository?.url ?? repository)?.replace(/^git\+|\.git$/g, '')
  const found = new Set()
  for (const path of ['README.md', 'CHANGELOG.md']) follow(path)
  for (const path of found) {
    mkdirSync(dirname(join(stage, path)), { recursive: true })
    if (!path.endsWith('.md')) cpSync(join(root, path), join(stage, path))
    else writeFileSync(join(stage, path), relink(readFileSync(join(root, path), 'utf8'), path, rewritten))
  }
  return [...found].sort()

  function follow(path) {
    if (found.has(path)) return
    found.add(path)
    if (!path.endsWith('.md')) return
    for (const target of linksOf(join(root, path), path)) if (TRAVELS.test(target) && existsSync(join(root, target))) follow(target)
  }

  function rewritten(place, anchor, link) {
    if (found.has(place)) return link
    return base === undefined ? undefined : `${base}/blob/main/${place}${anchor}`
  }
}

/**
 * The text of the document at `path` with other links.
 * @param to gives the new address of a relative link, from its target (from the root), its anchor and its address; undefined makes it plain text
 */
export function relink(text, path, to) {
  return text.replace(LINK, (_, picture, words, target, anchor = '') => {
    const address = to(resolved(path, target), anchor, `${target}${anchor}`)
    return address === undefined ? words : `${picture}[${words}](${address})`
  })
}

/** The relative links of the documents of a package that lead nowhere, as 'README.md → docs/gone.md'. */
export function deadLinks(folder, documents) {
  return documents
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      linksOf(join(folder, path), path)
        .filter((target) => !existsSync(join(folder, target)))
        .map((target) => `${path} → ${target}`),
    )
}

const linksOf = (file, path) => [...readFileSync(file, 'utf8').matchAll(LINK)].map(([, , , target]) => resolved(path, target))

/** A link's target, from the root. */
const resolved = (path, target) => normalize(join(dirname(path), target)).replaceAll('\\', '/')
