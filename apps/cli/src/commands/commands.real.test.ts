/** `doctor`, `keygen` and `completion` by the command itself; bash completes by its script. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { postgrad, run } from '../process.fixture.js'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postgrad-commands-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('CLI-70 doctor looks at this machine, as text and as JSON', async () => {
  const [text, json] = await Promise.all([postgrad('doctor'), postgrad('doctor', '--json', '--ports', '29500-29501')])
  expect(text.err).toBe('')
  const found = JSON.parse(json.out) as { name: string; verdict: string }[]
  for (const name of [
    'node',
    'TypeScript',
    'cores',
    'memory',
    'shared heap',
    'device wasm',
    'clock',
    'loopback TCP',
    'Unix sockets',
    'launcher',
  ]) {
    expect(found.map((one) => one.name)).toContain(name)
    expect(text.out).toMatch(new RegExp(`^(ok  |warn|fail)  ${name} `, 'm'))
  }
  expect(found.map((one) => one.name)).toContain('ports 29500-29501')
  expect(json.code).toBe(found.some(({ verdict }) => verdict === 'fail') ? 1 : 0)
})

test('CLI-60 keygen writes once, and names what it wrote', async () => {
  const out = join(folder, 'cluster.key')
  const first = await postgrad('keygen', '--role', 'member', 'observer', '--out', out)
  expect([first.code, first.out]).toEqual([
    0,
    `${out}: all keys\n${join(folder, 'cluster.observer.key')}: the key of role 'observer' alone\n`,
  ])
  const text = readFileSync(out, 'utf8')
  const again = await postgrad('keygen', '--out', out)
  expect([again.code, readFileSync(out, 'utf8')]).toEqual([2, text])
  expect(again.err).toContain('KEY_FILE_EXISTS')
  expect(first.out + again.err).not.toContain(/ = (\S+)/.exec(text)![1]!)
  expect(
    readdirSync(folder)
      .filter((name) => name.endsWith('.key'))
      .sort(),
  ).toEqual(['cluster.key', 'cluster.observer.key'])
})

/** Without bash nobody can say what its completion does. */
const describeBash = existsSync('/bin/bash') ? describe : describe.skip

describeBash('bash', () => {
  let script = ''
  beforeAll(async () => {
    script = (await postgrad('completion', 'bash')).out
  })

  /** Bash's offers after this line. */
  async function offers(line: string): Promise<readonly string[]> {
    const { out, err } = await run('/bin/bash', [
      '--norc',
      '-c',
      `${script}\nCOMP_LINE='${line}'; COMP_POINT=${line.length}; COMP_WORDBREAKS=' :'; _postgrad; printf '%s\\n' "\${COMPREPLY[@]}"`,
    ])
    expect(err).toBe('')
    return out.split('\n').filter((word) => word !== '')
  }

  test('CLI-80 takes the script', async () => {
    expect(await run('/bin/bash', ['-n', '-c', script])).toMatchObject({ code: 0, err: '' })
  })

  test('CLI-80 completes commands, options and values', async () => {
    const commands = ['run', 'ps', 'top', 'doctor', 'keygen', 'replay', 'completion', 'help', '--version']
    expect(await offers('postgrad ')).toEqual(expect.arrayContaining(commands))
    expect(await offers('postgrad r')).toEqual(['run', 'replay'])
    expect(await offers('postgrad run p.ts --res')).toEqual(['--restart'])
    expect(await offers('postgrad run --restart ')).toEqual(['none', 'all', 'failed'])
    expect(await offers('postgrad run p.ts -d ')).toEqual(['wasm', 'js', 'blas'])
    expect(await offers('postgrad completion z')).toEqual(['zsh'])
    expect(await offers('postgrad help do')).toEqual(['doctor'])
    // Files are the shell's own business.
    expect(await offers('postgrad run --key ')).toEqual([])
    expect(await offers('postgrad run p.ts -- --res')).toEqual([])
  })
})
