/** The templates as projects: their types are right, and their tests pass. `npm run pack:check` also installs and starts each, on two versions of Node. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { run } from '../process.fixture.js'
import { projectFiles } from './project.js'
import { readTemplate, TEMPLATES, type TemplateName } from './templates.js'
import { writeProject } from './write-project.js'

const names = Object.keys(TEMPLATES) as TemplateName[]
let folder = ''
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'postgrad templates ')))
  const here = createRequire(import.meta.url)
  mkdirSync(join(folder, 'node_modules/@types'), { recursive: true })
  for (const name of ['postgrad', 'tsx', '@types/node'])
    symlinkSync(dirname(here.resolve(`${name}/package.json`)), join(folder, 'node_modules', name), 'junction')
  for (const name of names) writeProject(join(folder, name), projectFiles(readTemplate(name)!, name, 'file:../postgrad.tgz'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('CLI-124 their types are right', async () => {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
  // One project of them all, as they have one tsconfig.json.
  writeProject(join(folder, 'all'), new Map([['tsconfig.json', '{ "extends": "../cluster/tsconfig.json", "include": ["../*/*.ts"] }']]))
  const { out } = await run(process.execPath, [tsc, '-p', join(folder, 'all')])
  expect(out.split('\n').slice(0, 10)).toEqual([''])
})

test.each(names)('CLI-124 %s: its tests pass', async (name) => {
  const tsx = createRequire(import.meta.url).resolve('tsx')
  const { code, out } = await run(process.execPath, ['--import', tsx, '--test', join(folder, name, 'program.test.ts')])
  expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/fail 0/) })
})
