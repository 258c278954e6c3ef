/** The command `explain`, on the pages that come with the package, and on a page of the test. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { bridge } from '../bridge.js'
import { commandTree, main } from '../commands/cli.js'
import { treeOf } from '../completion/tree.js'
import { surroundings } from '../surroundings.fixture.js'
import { readSections, sectionsOf } from './sections.js'
import { listText, sectionText } from './text.js'

const PAGE = `# Errors: tests

Not a section.

### \`A_B\`

The worker **stopped** *now*. See [the guide](../guide/x.md#y) about \`stop()\`
and more.

- One.
- Two, which
  has two lines.

**What to do:** Try again.

<!-- a comment -->
~~~text
stop: ${'word '.repeat(12)}end.
~~~

### \`C_D\`

It failed.

## Another area

No section either.
`

async function explain(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const around = surroundings()
  const code = await main(['explain', ...args], '1.2.3', around, bridge)
  return { code, out: around.out(), err: around.err() }
}

test('CLI-90 a section has its paragraphs, items and code, without Markdown', () => {
  const [first, second, ...more] = sectionsOf('tests', PAGE)
  expect(more).toEqual([])
  expect(first).toEqual({
    code: 'A_B',
    subject: 'tests',
    parts: [
      { kind: 'text', text: 'The worker stopped now. See the guide (docs/guide/x.md#y) about stop() and more.' },
      { kind: 'item', text: 'One.' },
      { kind: 'item', text: 'Two, which has two lines.' },
      { kind: 'text', text: 'What to do: Try again.' },
      { kind: 'code', text: `stop: ${'word '.repeat(12)}end.` },
    ],
  })
  expect(second).toEqual({ code: 'C_D', subject: 'tests', parts: [{ kind: 'text', text: 'It failed.' }] })
  expect(sectionText(first!, 40)).toBe(`A_B

The worker stopped now. See the guide
(docs/guide/x.md#y) about stop() and
more.

- One.
- Two, which has two lines.

What to do: Try again.

    stop: word word word word word word
    word word word word word word end.
`)
  expect(listText([first!, second!], 60)).toBe(`tests:
  A_B                            The worker stopped now. Se…
  C_D                            It failed.
`)
})

test('CLI-90 each section of the pages is found, also with the line ends of Windows', () => {
  const folder = new URL('../../../../docs/errors/', import.meta.url)
  const headings = readdirSync(folder).flatMap((name) => readFileSync(new URL(name, folder), 'utf8').match(/^### `/gm) ?? [])
  expect(readSections().size).toBe(headings.length)
  expect(sectionsOf('tests', PAGE.replaceAll('\n', '\r\n'))).toEqual(sectionsOf('tests', PAGE))
})

test('CLI-90 a code is explained, in any case', async () => {
  const { code, out, err } = await explain('worker_died')
  expect([code, err]).toEqual([0, ''])
  expect(out).toMatch(/^WORKER_DIED\n\n.*\n\nWhat to do: .*\n\n {4}\S.*\n$/s)
  // Files are named from the package's folder.
  expect(out).toMatch(/\(docs\/guide\/.*\nThe files in brackets are in .+\.\n$/s)
  expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100)
  const three = await explain('WORKER_DIED', 'RPC_TIMEOUT', 'pipeline')
  const withoutPlace = out.replace(/\nThe files in brackets .*\n$/, '')
  expect(three.out.startsWith(`${withoutPlace}\n\nRPC_TIMEOUT\n`)).toBe(true)
  expect(three.out.match(/The files in brackets/g)).toHaveLength(1)
  expect(three.out).toContain('training:\n  PIPELINE_')
})

test('CLI-90 the begin of a code lists all that have it, and no code lists all', async () => {
  const codes = [...readSections().keys()]
  const some = codes.filter((code) => code.startsWith('PIPELINE'))
  const listed = (out: string): string[] => out.split('\n').flatMap((line) => /^ {2}([A-Z_0-9]+) /.exec(line)?.[1] ?? [])
  expect(some.length).toBeGreaterThan(1)
  expect(listed((await explain('pipeline')).out)).toEqual(some)
  const { out } = await explain()
  expect(listed(out)).toEqual(codes)
  // A stream that is not a terminal gets whole lines.
  expect(out).not.toContain('…\n')
  expect(JSON.parse((await explain('--json')).out)).toEqual([...readSections().values()])
})

test('CLI-90 an unknown code is named, with similar ones; known ones are explained all the same', async () => {
  const { code, out, err } = await explain('WORKER_DEAD', 'RPC_TIMEOUT')
  expect(code).toBe(1)
  expect(out).toMatch(/^RPC_TIMEOUT\n\n.*What to do: /s)
  expect(err).toContain("'WORKER_DEAD' is not an error code of postgrad")
  expect(err).toContain('Similar: WORKER_DIED, ')
  expect(err.match(/[A-Z]+_[A-Z_]+(?=[,.])/g)).toHaveLength(5)
  expect((await explain('QUOTA')).err).toContain('A program may throw codes of its own.')
})

test('CLI-90 the shells complete codes', () => {
  const tree = treeOf(commandTree('1.2.3', { around: surroundings(), bridge, exitWith: () => {} }))
  expect(tree.commands.find(({ name }) => name === 'explain')!.argument).toEqual({
    kind: 'choices',
    choices: [...readSections().keys()].sort(),
  })
})
