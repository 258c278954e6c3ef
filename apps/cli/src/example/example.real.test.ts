/** The command `example`: its list, in this process, and a run as a user has it, in a process of its own. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { bridge } from '../bridge.js'
import { commandTree, main } from '../commands/cli.js'
import { treeOf } from '../completion/tree.js'
import { MAIN, postgrad, run } from '../process.fixture.js'
import { surroundings } from '../surroundings.fixture.js'
import { readExamples } from './catalog.js'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postgrad example '))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function example(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const around = surroundings()
  const code = await main(['example', ...args], '1.2.3', around, bridge)
  return { code, out: around.out(), err: around.err() }
}

const names = [...readExamples().keys()]

test('CLI-110 each example is listed, has sources, and has a compiled program', async () => {
  expect(names.length).toBeGreaterThan(9)
  for (const { source, main: program } of readExamples().values())
    expect([existsSync(join(source, 'program.ts')), existsSync(join(source, 'main.ts')), existsSync(program)]).toEqual([true, true, true])
  const { code, out, err } = await example()
  expect([code, err]).toEqual([0, ''])
  expect(out.match(/^ {2}[a-z-]+(?= {2})/gm)?.map((line) => line.trim())).toEqual(names)
  const listed = JSON.parse((await example('--json')).out) as { name: string; source: string }[]
  expect(listed.map(({ name }) => name)).toEqual(names)
  const rl = listed.find(({ name }) => name === 'rl')!
  expect((await example('rl', '--source')).out).toBe(`${rl.source}\n`)
  expect(JSON.parse((await example('rl', '--json')).out)).toEqual([rl])
})

test('CLI-110 an unknown name exits with 2, and the message names similar ones', async () => {
  expect(await example('pipelines')).toEqual({
    code: 2,
    out: '',
    err: "postgrad example: unknown example 'pipelines'. Similar: pipeline. 'postgrad example' lists all.\n",
  })
  expect((await example('xyz')).err).toBe("postgrad example: unknown example 'xyz'. 'postgrad example' lists all.\n")
  expect(await example('xyz', '--json')).toMatchObject({ code: 2, out: '' })
})

test('CLI-111 options before the name exit with 2, and the message has them after it', async () => {
  const text = 'postgrad example: the options of an example come after its name: postgrad example'
  expect(await example('--observers', '2', 'rl')).toEqual({ code: 2, out: '', err: `${text} rl --observers 2\n` })
  expect((await example('--observers')).err).toBe(`${text} <name> [options]\n`)
})

test('CLI-111 help is that of the command, and after a name that of the example', async () => {
  const { code, out } = await example('--help')
  expect([code, out]).toEqual([0, expect.stringMatching(/^Usage: postgrad example \[options\] \[name\][\s\S]*--source[\s\S]*Examples:\n/)])
  expect(await postgrad('example', 'mlp', '--help')).toMatchObject({ code: 0, err: '', out: expect.stringContaining('--layers N') })
})

test('CLI-111 an example runs with its options, writes its picture, and its exit code is that of the command', async () => {
  const out = join(folder, 'new', 'note.svg')
  const { code, out: said, err } = await postgrad('example', 'design-note', '--steps', '2', '--out', out)
  expect([code, err]).toEqual([0, ''])
  expect(said).toContain('worker1 → worker0: loss ')
  expect([readFileSync(out, 'utf8').slice(0, 4), existsSync(out.replace('.svg', '.jsonl'))]).toEqual(['<svg', true])
  expect(await postgrad('example', 'mlp', '--layer', '3')).toMatchObject({ code: 2, out: '', err: expect.stringContaining("'--layer'") })
})

test('CLI-111 a picture goes into the current folder, also below a script of npm, which says where the user called it', async () => {
  const args = [MAIN, 'example', 'design-note', '--steps', '2']
  const at = join(folder, 'new')
  const { code, out } = await run(process.execPath, args, undefined, { INIT_CWD: tmpdir() }, at)
  expect([code, out, readdirSync(join(at, 'out')).sort()]).toEqual([
    0,
    expect.stringContaining(join('out', 'design-note.svg')),
    ['design-note.jsonl', 'design-note.svg'],
  ])
})

test('CLI-110 the shells complete names', () => {
  const tree = treeOf(commandTree('1.2.3', { around: surroundings(), bridge, exitWith: () => {} }))
  expect(tree.commands.find(({ name }) => name === 'example')!.argument).toEqual({ kind: 'choices', choices: names })
})
