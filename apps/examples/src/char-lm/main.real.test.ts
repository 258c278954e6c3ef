/**
 * The main job as a user runs it, in a process of its own, small: its output and files, how it is interrupted, and its error messages.
 * `main.soak.test.ts` has it on gpu.js, too, and the deaths of all workers.
 */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from 'postgrad'
import { type End, expectWellFormed, runScript } from '../shared/script.suite.js'
import { SENTENCES } from './fixtures/sentences.js'
import { readSettings } from './settings.js'
import { encode, readText } from './text.js'

const isSoak = process.env.POSTGRAD_SOAK === '1'

let folder = ''
let data = ''
let out = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'char-lm-'))
  data = join(folder, 'text "of" <sentences> & more.txt')
  out = join(folder, 'new', 'curve.svg')
  await writeFile(data, SENTENCES)
})
afterAll(() => rm(folder, { recursive: true }))

const run = (script: string, args: readonly string[], onOutput?: Parameters<typeof runScript>[2]): Promise<End> =>
  runScript(new URL(script, import.meta.url), args, onOutput)
const main = (...args: string[]): Promise<End> => run('./main.js', args)
const small = (...more: string[]): string[] => ['--data', data, '--hidden', '24', '--batch', '16', '--sequence', '8', '--out', out, ...more]

describe('a run', () => {
  test.each([['wasm', 'ps wasm, trainer wasm, evaluator wasm'], ...(isSoak ? [['js', 'ps js, trainer js, evaluator js'] as const] : [])])(
    '%s: 25 steps end below the unigram distribution; picture, samples and kernels',
    async (device, kernels) => {
      const { code, stdout, stderr } = await main(...small('--device', device, '--steps', '25', '--lr', '2'))
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const [, loss, unigram] = /held-out loss: ([\d.]+) nats\/char; unigram: ([\d.]+)/.exec(stdout)!.map(Number)
      expect(loss).toBeLessThan(unigram! - 0.3)
      expect(stdout).toContain(`loss of the unigram distribution on the held-out text: ${unigram!.toFixed(3)} nats/char`)
      expect(stdout).toMatch(/training \d+%: /)
      expect(stdout).toContain('sampled before training')
      expect(stdout).toContain('sampled after 25 steps')
      expect(stdout).toContain(`kernels that ran: ${kernels}`)
      expect(stdout).not.toContain('\u001b')
      const svg = await readFile(out, 'utf8')
      expectWellFormed(svg)
      expect(svg).toContain(`unigram ${unigram!.toFixed(2)}`)
      expect(svg).toContain(`held out ${loss!.toFixed(2)}`)
      await rm(out)
    },
  )

  test('by time: it ends when the time is over', async () => {
    const { code, stdout } = await main(...small('--seconds', '1'))
    expect(code).toBe(0)
    expect(Number(/trained \d+ steps in ([\d.]+) s/.exec(stdout)![1])).toBeLessThan(3)
    await rm(out)
  })
})

test('Ctrl-C in the middle: a word, code 130, nothing written, nothing left running', async () => {
  let pressed = false
  const { code, stdout, stderr } = await run('./main.js', small('--seconds', '60'), (printed, kill) => {
    if (pressed || !/chars\/s/.test(printed)) return
    pressed = true
    kill('SIGINT')
  })
  expect({ code, stderr: stderr.trim() }).toEqual({ code: 130, stderr: 'npm start: interrupted; nothing was written' })
  expect(stdout).not.toContain('held-out loss:')
  expect(existsSync(out)).toBe(false)
})

test.each(isSoak ? ['ps', 'trainer', 'evaluator'] : ['trainer'])(
  '%s dies in the middle: the job fails at once and names it',
  async (victim) => {
    process.env.POSTGRAD_TEST_VICTIM = victim
    const { code, stdout, stderr } = await run('./fixtures/dies.js', [out])
    delete process.env.POSTGRAD_TEST_VICTIM
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.trim().split('\n').at(-1)).toMatch(new RegExp(`^WORKER_DIED about ${victim}: .*exit code 9`))
  },
)

describe('what cannot be', () => {
  test('help, and a flag that does not exist', async () => {
    const help = await main('--help')
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(help.stdout).toMatch(/^Usage: npm start -- \[options\]/)
    expect(await main('--nonsense')).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining("'--nonsense'") })
  })

  test.each([
    ['missing', null, 'does not exist'],
    ['empty', '', 'has 0 characters'],
    ['tiny', 'hello\n', 'has 6 characters'],
    ['binary', Uint8Array.from({ length: 9000 }, (_, i) => (i * 7) % 256), 'is not a text in UTF-8'],
    ['of NULs', new Uint8Array(9000), 'is a binary file'],
  ])('a file that is %s', async (name, content, expected) => {
    const file = join(folder, `${name}.txt`)
    if (content !== null) await writeFile(file, content)
    const error: PostgradError = await readText(file)
      .then((text) => encode(text, readSettings([])!))
      .then(
        () => null,
        (thrown) => thrown,
      )
    expect(isPostgradError(error)).toBe(true)
    expect(error.message).toContain(`${file} ${expected}`)
    expect(error.message).not.toContain('\n')
  })

  test('such a file is told in one line on stderr', async () => {
    const file = join(folder, 'short.txt')
    await writeFile(file, 'hello\n')
    const { code, stdout, stderr } = await main('--data', file, '--out', out)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(`${file} has 6 characters`)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })

  test('a folder as the data, and as the picture', async () => {
    expect(await main('--data', folder)).toMatchObject({ code: 1, stderr: expect.stringContaining('is a folder') })
    expect(await main('--data', data, '--out', folder)).toMatchObject({ code: 1, stderr: expect.stringContaining('is a folder') })
  })
})
