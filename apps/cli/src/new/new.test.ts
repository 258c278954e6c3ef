/** The command `new`, in this process: its list, names, folders, and how a project names postgrad. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { bridge } from '../bridge.js'
import { commandTree, main } from '../commands/cli.js'
import { treeOf } from '../completion/tree.js'
import { surroundings } from '../surroundings.fixture.js'
import { dependencyIn, installedAs } from './dependency.js'
import { packageName, projectFiles, TOOLS } from './project.js'
import { readTemplate, TEMPLATES, type TemplateName } from './templates.js'
import { refusal, writeProject } from './write-project.js'

let folder = ''
let tarball = ''
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'postgrad new ')))
  tarball = join(folder, 'postgrad-1.2.3.tgz')
  writeFileSync(tarball, '')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const create = (...args: string[]) => createBy({}, ...args)

async function createBy(env: NodeJS.ProcessEnv, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const around = surroundings({ env })
  const code = await main(['new', ...args], '1.2.3', around, bridge)
  return { code, out: around.out(), err: around.err() }
}

const names = Object.keys(TEMPLATES) as TemplateName[]

test('CLI-120 without a template it lists all; names can be completed; an unknown one exits with 2', async () => {
  const { code, out, err } = await create()
  expect([code, err]).toEqual([0, ''])
  expect(out.match(/^ {2}[a-z-]+(?= {2})/gm)?.map((line) => line.trim())).toEqual(names)
  expect(JSON.parse((await create('--json')).out)).toEqual(Object.entries(TEMPLATES).map(([name, about]) => ({ name, about })))
  expect(await create('pipelines')).toEqual({
    code: 2,
    out: '',
    err: "postgrad new: unknown template 'pipelines'. Similar: pipeline. 'postgrad new' lists all.\n",
  })
  const tree = treeOf(commandTree('1.2.3', { around: surroundings(), bridge, exitWith: () => {} }))
  expect(tree.commands.find(({ name }) => name === 'new')!.argument).toEqual({ kind: 'choices', choices: names })
})

test('CLI-120 a project has the files of its template, a manifest and the common tsconfig.json', async () => {
  const at = join(folder, 'My Project')
  const { code, out, err } = await create('cluster', at, '--tarball', tarball)
  expect([code, err]).toEqual([0, ''])
  expect(out).toMatch(
    /My Project: package\.json, .*README\.md.*\n\nNext:\n {2}cd ['"].*My Project['"]\n {2}npm install\n {2}npm start\n {2}npm test\n$/,
  )
  const files = ['.gitignore', 'README.md', 'package.json', 'program.test.ts', 'program.ts', 'run.ts', 'tsconfig.json']
  expect(readdirSync(at).sort()).toEqual(files)
  const manifest = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')) as Record<string, unknown>
  expect(manifest).toMatchObject({ name: 'my-project', private: true, dependencies: { postgrad: 'file:../postgrad-1.2.3.tgz' } })
  const { devDependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as typeof manifest
  expect(TOOLS).toMatchObject({ tsx: `^${(devDependencies as { tsx: string }).tsx}` })
})

test('CLI-120 pnpm gets a project of its own, in which it may leave out install scripts', async () => {
  const at = join(folder, 'by-pnpm')
  const { out } = await createBy({ npm_config_user_agent: 'pnpm/12.0.0 npm/? node/v24.0.0 linux x64' }, 'cluster', at, '--tarball', tarball)
  expect(out).toMatch(/\n {2}pnpm install\n {2}pnpm start\n {2}pnpm test\n$/)
  expect(readFileSync(join(at, 'pnpm-workspace.yaml'), 'utf8')).toContain('allowBuilds:\n  esbuild: false\n')
})

test.each(names)('CLI-120 %s: README.md names its files and what to do, and a test compares with the program in one process', (name) => {
  const files = projectFiles(readTemplate(name)!, name, 'file:x.tgz')
  const readme = files.get('README.md')!
  for (const file of files.keys()) if (file.endsWith('.ts')) expect(readme).toContain(`| \`${file}\` |`)
  expect(readme).toMatch(/\nnpm install\nnpm start\n[\s\S]*`npm test`/)
  const tests = files.get('program.test.ts')!
  expect(readme).toContain(`\`pass ${tests.match(/^test\(/gm)!.length}\``)
  expect([tests.includes('inlined('), tests.includes('simulate(')]).toEqual([true, true])
})

test('CLI-121 a folder that exists is taken if it is empty, and refused otherwise', async () => {
  const [taken, empty, file] = ['taken', 'empty', 'file'].map((name) => join(folder, name)) as [string, string, string]
  for (const at of [taken, empty]) mkdirSync(at)
  for (const at of [join(taken, 'mine'), file]) writeFileSync(at, 'mine')
  expect([refusal(empty), refusal(join(folder, 'none')), refusal(taken), refusal(file)]).toEqual([
    null,
    null,
    'is not empty',
    'is not a folder',
  ])
  const { code, out, err } = await create('rl', taken, '--tarball', tarball)
  expect([code, out, readdirSync(taken)]).toEqual([1, '', ['mine']])
  expect(err).toContain('is not empty. Name another folder: npx postgrad new rl <folder>')
  expect((await create('rl', empty, '--tarball', tarball)).code).toBe(0)
})

test('CLI-121 a folder with nothing but a new git repository is taken', async () => {
  const at = join(folder, 'versioned')
  mkdirSync(join(at, '.git'), { recursive: true })
  expect((await create('rl', at, '--tarball', tarball)).code).toBe(0)
  expect(readdirSync(at)).toEqual(expect.arrayContaining(['.git', 'package.json']))
})

test('CLI-121 an error leaves nothing of a project, and what was there', () => {
  const files = new Map([
    ['a', '1'],
    ['no/folder', '2'],
  ])
  expect(() => writeProject(join(folder, 'deep', 'down'), files)).toThrow('ENOENT')
  expect(existsSync(join(folder, 'deep'))).toBe(false)
  const at = join(folder, 'shared')
  mkdirSync(at)
  writeFileSync(join(at, 'b'), 'mine')
  expect(() =>
    writeProject(
      at,
      new Map([
        ['a', '1'],
        ['b', '2'],
      ]),
    ),
  ).toThrow('EEXIST')
  expect([readdirSync(at), readFileSync(join(at, 'b'), 'utf8')]).toEqual([['b'], 'mine'])
})

test('CLI-121 a folder that cannot be made is named', async () => {
  const { code, err } = await create('rl', join(folder, 'x'.repeat(300)), '--tarball', tarball)
  expect([code, err]).toEqual([1, expect.stringMatching(/x{300} cannot be read \(ENAMETOOLONG/)])
})

const onPosix = process.platform === 'win32' ? test.skip : test // cmd.exe has no single quotes.

onPosix.each(['a$(touch ran)b', "it's", 'a\\b', '-x', 'two words'])(
  'CLI-120 a shell can execute the lines that are printed: %s',
  async (name) => {
    const before = process.cwd()
    process.chdir(folder)
    const { out } = await create('cluster', `./${name}`, '--tarball', tarball)
    process.chdir(before)
    const line = /^ {2}(cd .*)$/m.exec(out)![1]!
    const shell = spawnSync('sh', ['-c', `${line} && pwd`], { cwd: folder, encoding: 'utf8' })
    expect([shell.stdout, shell.stderr]).toEqual([`${join(folder, name)}\n`, ''])
    expect(existsSync(join(folder, 'ran'))).toBe(false)
  },
)

test.each([
  ['my-agent', 'my-agent'],
  ['My Agent', 'my-agent'],
  ['Überlänge (2)', 'uberlange-2'],
  ['.hidden_', 'hidden'],
  ['日本', 'my-project'],
  ['cluster', 'my-cluster'],
  ['postgrad', 'my-postgrad'],
  ['typescript', 'my-typescript'],
])('CLI-122 the project in the folder %s is called %s', (from, name) => {
  expect(packageName(from)).toBe(name)
})

test.each([
  ['file:../x.tgz', { path: 'x.tgz' }],
  ['../x.tgz', { path: 'x.tgz' }],
  ['sub/x.tgz', { path: 'user/sub/x.tgz' }],
  ['link:../built', { path: 'built' }],
  ['^0.1.0', { spec: '^0.1.0' }],
  ['https://example.org/x.tgz', { spec: 'https://example.org/x.tgz' }],
  ['workspace:*', null],
  ['file://../x.tgz', null],
])('CLI-123 an installation by %s', (spec, expected) => {
  const user = join(folder, 'user')
  const deep = join(user, 'node_modules/.pnpm/postgrad@1/node_modules/postgrad')
  mkdirSync(deep, { recursive: true })
  writeFileSync(join(deep, 'package.json'), '{ "name": "postgrad", "dependencies": { "comlink": "4" } }')
  writeFileSync(join(user, 'package.json'), JSON.stringify({ devDependencies: { postgrad: spec } }))
  expect(installedAs([deep])).toEqual(expected !== null && 'path' in expected ? { path: join(folder, expected.path) } : expected)
})

test('CLI-123 a path is that from the new folder; the nearest package.json that names postgrad counts, and the first folder asked', () => {
  const [outer, inner] = [join(folder, 'outer'), join(folder, 'outer', 'inner')]
  mkdirSync(join(inner, 'src'), { recursive: true })
  writeFileSync(join(outer, 'package.json'), JSON.stringify({ dependencies: { postgrad: pathToFileURL(tarball).href } }))
  writeFileSync(join(inner, 'package.json'), '{ broken')
  const source = installedAs([join(inner, 'src'), folder])!
  expect([source, dependencyIn(join(inner, 'new'), source)]).toEqual([{ path: tarball }, 'file:../../../postgrad-1.2.3.tgz'])
  expect(dependencyIn(inner, { spec: '^1.0.0' })).toBe('^1.0.0')
  expect(installedAs([folder])).toBeNull()
})

test('CLI-123 ~ is the home folder', () => {
  const at = join(folder, 'of-home')
  mkdirSync(at)
  for (const spec of ['~/x.tgz', 'file:~/x.tgz']) {
    writeFileSync(join(at, 'package.json'), JSON.stringify({ dependencies: { postgrad: spec } }))
    expect(installedAs([at])).toEqual({ path: join(homedir(), 'x.tgz') })
  }
})

test('CLI-123 through a link to a folder, the path counts from the real one', () => {
  const [real, link] = [join(folder, 'a', 'real'), join(folder, 'link')]
  mkdirSync(real, { recursive: true })
  symlinkSync(real, link, 'junction')
  expect(dependencyIn(join(link, 'new', 'deep'), { path: tarball })).toBe('file:../../../../postgrad-1.2.3.tgz')
  writeFileSync(join(real, 'x.tgz'), '')
  expect(dependencyIn(join(folder, 'b'), { path: join(link, 'x.tgz') })).toBe('file:../a/real/x.tgz')
})

test('CLI-123 --tarball takes a file that ends in .tgz or .tar.gz', async () => {
  const at = join(folder, 'nothing')
  mkdirSync(join(folder, 'folder.tgz'))
  for (const wrong of ['', '.', join(folder, 'outer', 'package.json')]) {
    const { code, err } = await create('rl', at, '--tarball', wrong)
    expect([code, err]).toEqual([2, expect.stringContaining('Name a file that ends in .tgz or .tar.gz.')])
  }
  const { code, err } = await create('rl', at, '--tarball', join(folder, 'folder.tgz'))
  expect([code, err, existsSync(at)]).toEqual([1, expect.stringContaining('folder.tgz is not a file. Name'), false])
})

test('CLI-123 where the installation does not say it, or its tarball is gone, nothing is written, and the message names the option', async () => {
  const at = join(folder, 'nowhere')
  // In the repository, package.json says `workspace:*`.
  const { code, err } = await create('rl', at)
  expect([code, err]).toEqual([1, expect.stringMatching(/cannot find out from which file .*new rl ['"].*nowhere['"] --tarball <file>\n$/)])
  const gone = await create('rl', at, '--tarball', join(folder, 'gone.tgz'))
  expect([gone.code, gone.err]).toEqual([
    1,
    expect.stringMatching(/gone\.tgz.* does not exist\. Name postgrad's tarball: .*--tarball <file>\n$/),
  ])
  expect(existsSync(at)).toBe(false)
})
