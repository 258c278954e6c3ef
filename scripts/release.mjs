/**
 * `npm run release -- minor`: writes a release into this repository: its version in all places that have it (`PLACES`), and in CHANGELOG.md the entries under "Unreleased" become those of
 * the version. Then it packs, and prints the commands that are left. It commits, tags and publishes nothing.
 *
 * The entries are written by hand, next to each change, in groups that users look for: changesets would make one list of them. So this moves a heading, and takes no parser.
 * Each run first proves that on small texts; `npm test` runs it with --dry-run, so that no place can lose its version unseen, and no page can have one that is in no place.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { capture, projects, root } from './setup.mjs'

const HELP = `Usage: npm run release -- VERSION [--dry-run]

VERSION is major, minor, patch, or a version such as 1.2.0.
Writes the version into each package.json and into each other place that has it, and moves the entries under "Unreleased" in CHANGELOG.md to that version. Then it packs.
  --dry-run  says what it would write, and writes nothing
It commits, tags and publishes nothing: it prints the commands for that, and the lines that say that the package is not published.`

/** Places of the version, apart from each package.json: file → what is before it and after it. */
const PLACES = {
  'CITATION.cff': /^(version: ).*()$/m,
  'README.md': /(out\/postgrad-)\d\S*?(\.tgz)/g,
  'docs/start.md': /(out\/postgrad-)\d\S*?(\.tgz)/g,
  'packages/transport/src/socket/handshake.ts': /^(export const RELEASE = ').*(')$/m,
}
const OF_MANIFEST = /^( {2}"version": ").*(",?)$/m
/** True until the first version is published. */
const UNPUBLISHED = 'not in any registry yet'

prove()
const { values, positionals } = parsed()
if (values.help || positionals.length !== 1) {
  const say = values.help ? console.log : console.error
  say(HELP)
  process.exit(values.help ? 0 : 2)
}
try {
  await release(positionals[0], values['dry-run'] === true)
} catch (error) {
  console.error(`release: ${error.message}`)
  process.exitCode = 1
}

async function release(wanted, isDry) {
  const { version } = JSON.parse(read('packages/postgrad/package.json'))
  const next = nextVersion(version, wanted)
  const manifests = [root, ...projects()].map((folder) => [relative(root, join(folder, 'package.json')), OF_MANIFEST])
  const written = [...manifests, ...Object.entries(PLACES)].map(([path, pattern]) => [path, withVersion(read(path), pattern, next, path)])
  const pages = new Map([...(await tracked()), ...written])
  const others = linesWith(pages, version)
  if (others.length > 0) throw new Error(`write these places of the version into scripts/release.mjs:\n  ${others.join('\n  ')}`)
  const date = new Date().toISOString().slice(0, 10)
  const changelog = withRelease(read('CHANGELOG.md'), next, date)
  // So it is after each release, until the next change.
  if (changelog === null && !isDry)
    throw new Error('CHANGELOG.md: expected entries under "Unreleased", found none: there is nothing to release')
  if (changelog !== null) written.push(['CHANGELOG.md', changelog])
  console.log(`release: ${version} to ${next} in ${written.length} files: ${written.map(([path]) => path).join(', ')}`)
  if (changelog === null) console.log('release: CHANGELOG.md has no entries under "Unreleased": there is nothing to release')
  if (isDry) return
  const { output: changes } = await capture('git', ['status', '--porcelain'], { cwd: root })
  if (changes.trim() !== '') throw new Error(`expected a tree without changes, got\n${changes.trimEnd()}\n  Remedy: commit them first`)
  for (const [path, text] of written) writeFileSync(join(root, path), text)
  const packed = await capture(process.execPath, [join(root, 'scripts/pack.mjs')], { cwd: root })
  if (packed.code !== 0) throw new Error(`all files are written, but the pack failed:\n${packed.output}`)
  console.log(`${packed.output.trimEnd()}

Left to do:
  npm test && npm run pack:check
  git commit -am 'Release ${next}' && git tag v${next}
  npm publish out/postgrad-${next}.tgz${unpublished(linesWith(pages, UNPUBLISHED))}`)
}

function unpublished(lines) {
  return lines.length === 0 ? '' : `\n  then rewrite the lines that say '${UNPUBLISHED}':\n    ${lines.join('\n    ')}`
}

/** The pages of the repository, apart from the changelog, which has all versions: path → text. */
async function tracked() {
  const { code, output } = await capture('git', ['ls-files', '*.md', '*.cff'], { cwd: root })
  if (code !== 0) throw new Error(`cannot list the pages: ${output.trim()}`)
  const paths = output.split('\n').filter((path) => path !== '' && path !== 'CHANGELOG.md')
  return paths.map((path) => [path, read(path)])
}

/** The lines with a text that is not a part of a longer word or version, as 'README.md:33'. @param pages path → text */
function linesWith(pages, text) {
  const pattern = new RegExp(`(?<![\\w.])v?${text.replaceAll('.', '\\.')}(?!\\.?\\w)|postgrad-${text}`)
  return [...pages].flatMap(([path, page]) =>
    page.split('\n').flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}`] : [])),
  )
}

/** @param wanted 'major', 'minor', 'patch', or a version above this one */
function nextVersion(version, wanted) {
  const parts = version.split('.').map(Number)
  const at = ['major', 'minor', 'patch'].indexOf(wanted)
  if (at >= 0) return parts.map((part, index) => (index < at ? part : index === at ? part + 1 : 0)).join('.')
  if (!/^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}$/.test(wanted))
    throw new Error(`expected major, minor, patch, or a version such as 1.2.0, got '${wanted}'`)
  const first = wanted
    .split('.')
    .map((part, index) => Number(part) - parts[index])
    .find((difference) => difference !== 0)
  if (!(first > 0)) throw new Error(`expected a version above ${version}, got ${wanted}`)
  return wanted
}

function withVersion(text, pattern, version, path) {
  if (text.search(pattern) < 0)
    throw new Error(`${path}: expected a version as ${pattern}, found none. Write the place of its version into scripts/release.mjs`)
  return text.replace(pattern, (_, before, after) => `${before}${version}${after}`)
}

/** The changelog, in which the entries under "Unreleased" are those of this version. Null: there are none. */
function withRelease(changelog, version, date) {
  const [, entries] = /^## Unreleased\n([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(changelog) ?? []
  if (entries === undefined) throw new Error('CHANGELOG.md: expected a heading "## Unreleased", found none')
  if (entries.trim() === '') return null
  return changelog
    .replace('## Unreleased\n', () => `## Unreleased\n\n## ${version}, ${date}\n`)
    .replace(' Nothing has been released yet.', '')
}

function prove() {
  const versions = ['major', 'minor', 'patch', '1.4.0', '2.0.0'].map((wanted) => nextVersion('1.3.9', wanted))
  assert.deepEqual(versions, ['2.0.0', '1.4.0', '1.3.10', '1.4.0', '2.0.0'])
  for (const wrong of ['1.3.9', '1.2.10', '0.9.9', '1.4', 'v2.0.0', 'next']) assert.throws(() => nextVersion('1.3.9', wrong), /expected/)
  const changelog = '# Changelog\n\nNothing yet? Nothing has been released yet. So.\n\n## Unreleased\n\n### Added\n\n- $& one\n'
  const first = '# Changelog\n\nNothing yet? So.\n\n## Unreleased\n\n## 0.2.0, 2026-01-02\n\n### Added\n\n- $& one\n'
  assert.equal(withRelease(changelog, '0.2.0', '2026-01-02'), first)
  assert.equal(withRelease(first, '0.3.0', '2026-01-03'), null)
  assert.throws(() => withRelease('# Changelog\n', '0.3.0', '2026-01-03'), /heading/)
  assert.equal(
    withVersion('{\n  "version": "0.1.0",\n  "x": { "version": "0.1.0" }\n}', OF_MANIFEST, '0.2.0'),
    '{\n  "version": "0.2.0",\n  "x": { "version": "0.1.0" }\n}',
  )
  assert.throws(() => withVersion('{}', OF_MANIFEST, '0.2.0', 'a.json'), /a\.json/)
  const twice = withVersion('out/postgrad-0.1.0.tgz, out/postgrad-0.1.0.tgz', PLACES['docs/start.md'], '0.2.0')
  assert.equal(twice, 'out/postgrad-0.2.0.tgz, out/postgrad-0.2.0.tgz')
  const page = 'of 10.1.0, 0.1.01 and 0.1.0.1\nat v0.1.00\nv0.1.0\nof 0.1.0.\n`postgrad-0.1.0.tgz`\n'
  assert.deepEqual(linesWith(new Map([['a.md', page]]), '0.1.0'), ['a.md:3', 'a.md:4', 'a.md:5'])
}

function read(path) {
  return readFileSync(join(root, path), 'utf8')
}

function parsed() {
  try {
    return parseArgs({ options: { help: { type: 'boolean', short: 'h' }, 'dry-run': { type: 'boolean' } }, allowPositionals: true })
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`)
    process.exit(2)
  }
}
