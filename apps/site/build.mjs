/**
 * Builds the site into `out/site`: gathers the pages, lets VitePress make HTML of them, adds the pages as text, and looks for dead links. Does nothing if no source changed since
 * the last build.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { projects, read, root, walk } from '../../scripts/setup.mjs'
import { deadLinks } from './links.mjs'
import { lostQueries } from './search.mjs'
import { proveServing, serve } from './serve.mjs'
import { writeTexts } from './texts.mjs'

export const outFolder = join(root, 'out/site')
const stamp = join(root, 'apps/site/.cache/built')

/** Throws an error that lists what is wrong with the pages. */
export async function buildSite({ force = false, say }) {
  const key = sourcesKey()
  if (!force && read(stamp) === key && existsSync(join(outFolder, 'index.html'))) return say('site: nothing to do')
  // A build that fails leaves no site that a later run would take for a finished one.
  rmSync(stamp, { force: true })
  const start = performance.now()
  // TypeDoc and VitePress take a second to load, which a site that is built already need not pay.
  const { collect, pagesFolder } = await import('./collect.mjs')
  const texts = await collect()
  say(`site: ${texts.size} pages gathered in ${seconds(start)}`)
  const { build } = await import('vitepress')
  await quietly(() => build(join(root, 'apps/site')))
  writeTexts(texts, pagesFolder, outFolder)
  const dead = deadLinks(outFolder)
  await proveServing(outFolder)
  if (dead.length > 0) throw new Error(['site: links that lead nowhere:', ...dead].join('\n  '))
  const lost = await lostQueries(outFolder)
  if (lost.length > 0) throw new Error(['site: the search does not find (apps/site/search.mjs):', ...lost].join('\n  '))
  mkdirSync(dirname(stamp), { recursive: true })
  writeFileSync(stamp, key)
  say(`site: built in ${seconds(start)}, in ${relative(root, outFolder)}`)
}

/** Resolves with the address of the built site. */
export async function serveSite({ port, open = false }) {
  const { address } = await serve(outFolder, port)
  const opener = { darwin: 'open', win32: 'explorer' }[process.platform] ?? 'xdg-open'
  // Without a browser at hand, the address is printed in any case.
  if (open) spawn(opener, [address], { stdio: 'ignore', detached: true }).on('error', () => {})
  return address
}

const seconds = (start) => `${((performance.now() - start) / 1000).toFixed(1)} s`

/** VitePress reports its progress by a spinner; only its warnings are of use in a log. */
async function quietly(run) {
  const { log, info } = console
  console.log = () => {}
  console.info = () => {}
  try {
    await run()
  } finally {
    Object.assign(console, { log, info })
  }
}

/** Everything that the site is made from. */
function sourcesKey() {
  const hash = createHash('sha256').update(process.versions.node)
  const add = (path) => hash.update(`${relative(root, path)}\0`).update(readFileSync(path))
  for (const { path } of walk(join(root, 'docs'))) add(path)
  for (const name of readdirSync(join(root, 'apps/site'))) {
    if (!['node_modules', '.cache'].includes(name)) for (const { path } of walk(join(root, 'apps/site', name))) add(path)
  }
  for (const folder of projects()) {
    for (const { path } of [...walk(join(folder, 'dist')), ...walk(join(folder, 'api.txt'))]) {
      if (/\.d\.ts$|api\.txt$/.test(path) && !path.endsWith('.test.d.ts')) add(path)
    }
  }
  for (const file of [
    'README.md',
    'SECURITY.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    'pnpm-lock.yaml',
    'scripts/pack-docs.mjs',
  ])
    add(join(root, file))
  return hash.digest('hex')
}
