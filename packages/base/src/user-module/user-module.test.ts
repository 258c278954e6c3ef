/** Which files are TypeScript, and what loads them. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from '@jest/globals'
import { isTypeScript, loaderMissing, stripsTypes } from './user-module.js'

test.each([
  ['file:///a/b.ts', true],
  ['file:///a/b.mts', true],
  ['file:///a/b.ts?version=1', true],
  ['file:///a/b.js', false],
  ['file:///a/ts', false],
  ['file:///a.ts/b.mjs', false],
])('%s is TypeScript: %s', (url, expected) => {
  expect(isTypeScript(url)).toBe(expected)
})

test.each(['22.18.0', '22.20.1', '23.0.0', '24.11.0'])('Node %s strips types', (version) => {
  expect(stripsTypes(version)).toBe(true)
})

test.each(['20.20.2', '22.17.9'])('Node %s does not, and says what helps without tsx', (version) => {
  expect(stripsTypes(version)).toBe(false)
  expect(loaderMissing('file:///a/b.ts', version)).toMatchObject({
    code: 'TYPESCRIPT_LOADER_MISSING',
    values: { program: 'file:///a/b.ts' },
    remedy: expect.stringContaining('npm install --save-dev tsx'),
  })
})

test('the loader is registered once in a thread, however many modules are TypeScript', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-base-'))
  try {
    for (const name of ['a', 'b', 'c']) writeFileSync(join(folder, `${name}.ts`), `export const name: string = '${name}'\n`)
    // Counts the hook that is registered after tsx, since tsx may have some of its own: how depends on the versions of Node and tsx.
    const program = `
      import nodeModule from 'node:module'
      import { importModule } from ${JSON.stringify(new URL('./user-module.js', import.meta.url).href)}
      let count = 0
      for (const way of ['register', 'registerHooks']) {
        const original = nodeModule[way]
        if (original === undefined) continue
        nodeModule[way] = (what, ...rest) => {
          if (what instanceof URL ? what.href.endsWith('/typescript-format.js') : what.resolve?.name === 'resolveSync') count++
          return original.call(nodeModule, what, ...rest)
        }
      }
      const names = await Promise.all(['a', 'b'].map(async (name) => (await importModule(${JSON.stringify(pathToFileURL(folder).href)} + '/' + name + '.ts', null)).name))
      names.push((await importModule(${JSON.stringify(pathToFileURL(folder).href)} + '/c.ts', null)).name)
      console.log(names.join(), count)`
    writeFileSync(join(folder, 'main.mjs'), program)
    const { NODE_OPTIONS: _, ...env } = process.env
    const { stdout, stderr } = spawnSync(process.execPath, [join(folder, 'main.mjs')], { env, timeout: 30_000, encoding: 'utf8' })
    expect([stdout, stderr]).toEqual(['a,b,c 1\n', ''])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.each([
  ['of two files', "import { three } from './model.js'\nexport const name: string = String(three)\n", 'export const three: number = 3\n'],
  [
    'with what Node does not strip',
    "import { Kind } from './model.js'\nexport const name = String(Kind.three)\n",
    'export enum Kind { three = 3 }\n',
  ],
])('CLU-57 a TypeScript program %s', (_what, program, model) => {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-base-'))
  try {
    writeFileSync(join(folder, 'program.ts'), program)
    writeFileSync(join(folder, 'model.ts'), model)
    const url = JSON.stringify(pathToFileURL(join(folder, 'program.ts')).href)
    const main = `import { importModule } from ${JSON.stringify(new URL('./user-module.js', import.meta.url).href)}
      console.log((await importModule(${url}, null)).name)`
    writeFileSync(join(folder, 'main.mjs'), main)
    const { NODE_OPTIONS: _, ...env } = process.env
    const { stdout, stderr } = spawnSync(process.execPath, [join(folder, 'main.mjs')], { env, timeout: 30_000, encoding: 'utf8' })
    expect([stdout, stderr]).toEqual(['3\n', ''])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

// Node 22 strips types, and remembers a module that it could not read: there tsx is asked first, where it is installed.
const testOwnLoader = process.versions.node.startsWith('22.') ? test.skip : test

testOwnLoader('CLU-112 TypeScript is read by the loader that the thread was started with, in place of tsx', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-base-'))
  try {
    writeFileSync(join(folder, 'program.ts'), "export const name: string = 'of tsx, or of Node'\n")
    const load = `export async function load(url, context, next) {
      return url.endsWith('.ts') ? { format: 'module', source: "export const name = 'of the loader'", shortCircuit: true } : next(url, context)
    }`
    writeFileSync(join(folder, 'load.mjs'), load)
    writeFileSync(join(folder, 'register.mjs'), "import { register } from 'node:module'\nregister('./load.mjs', import.meta.url)\n")
    const url = JSON.stringify(pathToFileURL(join(folder, 'program.ts')).href)
    writeFileSync(
      join(folder, 'main.mjs'),
      `import nodeModule from 'node:module'
      import { importModule } from ${JSON.stringify(new URL('./user-module.js', import.meta.url).href)}
      // tsx, registered above it, would read what the loader gives.
      let registered = 0
      const { register } = nodeModule
      nodeModule.register = (...args) => {
        registered++
        return register.apply(nodeModule, args)
      }
      console.log((await importModule(${url}, null)).name, registered)`,
    )
    const { NODE_OPTIONS: _, ...env } = process.env
    const flags = ['--no-warnings', '--import', pathToFileURL(join(folder, 'register.mjs')).href]
    const { stdout, stderr } = spawnSync(process.execPath, [...flags, join(folder, 'main.mjs')], { env, timeout: 30_000, encoding: 'utf8' })
    expect([stdout, stderr]).toEqual(['of the loader 0\n', ''])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
