/** `init`: processes that know nothing but where to meet become one group. Rules INI-1 to INI-9. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type ScriptEnd, script } from '../script.fixture.js'

const MEMBER = new URL('../fixtures/group-member.js', import.meta.url)
let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'init-test-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A port that was free a moment ago. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

type Line = Readonly<Record<string, unknown>>
interface Ended {
  readonly code: number | null
  readonly err: string
  readonly lines: readonly Line[]
}

const read = ({ code, out, err }: ScriptEnd): Ended => ({
  code,
  err,
  lines: out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line)),
})

function group(scenario: string, method: string, worldSize: number, options: object = {}): Promise<Ended[]> {
  const start = async (rank: number) => read(await script(MEMBER, scenario, method, `${rank}`, `${worldSize}`, JSON.stringify(options)))
  return Promise.all(Array.from({ length: worldSize }, (_, rank) => start(rank)))
}

describe('a group of processes', () => {
  test.each(['tcp', 'file'])('INI-2 INI-3 meets by %s, calls, differentiates and ends together', async (kind) => {
    const method = kind === 'tcp' ? `tcp://127.0.0.1:${await freePort()}` : pathToFileURL(join(folder, 'meeting')).href
    const ends = await group('together', method, 3)
    expect(ends.map(({ code, err }) => [code, err])).toEqual([
      [0, ''],
      [0, ''],
      [0, ''],
    ])
    const first = ends.map(({ lines }) => lines[0]!)
    for (const [rank, line] of first.entries()) {
      expect(line).toMatchObject({ rank, worldSize: 3 })
      expect((line.workers as unknown[]).toSorted()).toEqual([
        ['worker0', 0],
        ['worker1', 1],
        ['worker2', 2],
      ])
      expect(line.counts).toEqual([rank + 1, rank + 1, rank + 1])
    }
    const gradients = ends.slice(0, 2).map(({ lines }) => lines[1]!.gradients)
    expect(gradients[0]).toEqual(gradients[1])
    expect(gradients[0]).toHaveLength(3)
    expect(ends.map(({ lines }) => lines.at(-1))).toEqual([0, 1, 2].map((rank) => ({ rank, ended: true })))
  })
})
