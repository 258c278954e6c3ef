/**
 * The documents of the tarball: README.md, the documents, pictures and manifests that it leads to, and CHANGELOG.md, each at its own path. A link to
 * anything else of this repository becomes absolute, or plain text as long as package.json names no repository. `pack.mjs` calls it; `pack-check.mjs`
 * asks `deadLinks` whether it was done.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'

/** `[text](target)` and `![text](target)`, with an anchor or without; not where the target has a scheme. */
const LINK = /(!?)\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)/g
/** Their sources are at another place in the tarball (`pack-examples.mjs`). */
const EXAMPLES = 'apps/examples/src/'
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
    else
      writeFileSync(
        join(stage, path),
        readFileSync(join(root, path), 'utf8').replace(LINK, (...match) => rewritten(path, match)),
      )
  }
  return [...found].sort()

  function follow(path) {
    if (found.has(path)) return
    found.add(path)
    if (!path.endsWith('.md')) return
    for (const target of linksOf(join(root, path), path)) if (TRAVELS.test(target) && existsSync(join(root, target))) follow(target)
  }

  function rewritten(path, [link, , text, target, anchor = '']) {
    const place = resolved(path, target)
    if (found.has(place)) return link
    if (place.startsWith(EXAMPLES))
      return `[${text}](${relative(dirname(path), place.replace(EXAMPLES, 'examples/')).replaceAll('\\', '/')}${anchor})`
    return base === undefined ? text : `[${text}](${base}/blob/main/${place}${anchor})`
  }
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
