/** Licences of code that is copied into tarballs. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from './setup.mjs'

/** All but the last need their text next to the copy; Apache's also a NOTICE, and the licences of parts, where there are some. */
const LICENCES = ['MIT', 'Apache-2.0', 'BSD-3-Clause', '0BSD']

/**
 * @param inputs of esbuild's metafiles
 * @returns what THIRD-PARTY.md says of each package that they are of: name, version, licence and its text
 */
export function noticesOf(inputs) {
  const folders = new Set(inputs.filter((path) => /(^|\/)node_modules\//.test(path)).map((path) => packageOf(join(root, path))))
  return [...folders].map(notice).sort((a, b) => (a.name < b.name ? -1 : 1))
}

function packageOf(path) {
  let folder = dirname(path)
  while (
    JSON.parse(existsSync(join(folder, 'package.json')) ? readFileSync(join(folder, 'package.json'), 'utf8') : '{}').version === undefined
  )
    folder = dirname(folder)
  return folder
}

function notice(folder) {
  const { name, version, license, repository } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one))
  if (!LICENCES.includes(license) || file === undefined)
    throw new Error(`${name} ${version}: expected a file with the licence ${LICENCES.join(' or ')}, got '${license}'`)
  const parts = existsSync(join(folder, 'licenses')) ? readdirSync(join(folder, 'licenses')).map((one) => join('licenses', one)) : []
  const files = [file, ...readdirSync(folder).filter((one) => /^notice/i.test(one)), ...parts]
  const text = files.map((one) => readFileSync(join(folder, one), 'utf8').trim()).join('\n\n')
  const url = (repository?.url ?? repository).replace(/^git\+|\.git$/g, '')
  return { name, version, license, url, text }
}
