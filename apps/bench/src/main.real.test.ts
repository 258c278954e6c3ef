/** The benchmark as a process of its own: what programs read on stdout, and how it reports a wrong command line. `settings.test.ts` has the mistakes. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

function bench(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    // jest's own flags must not reach the child.
    const { NODE_OPTIONS: _, ...env } = process.env
    const main = fileURLToPath(new URL('./main.js', import.meta.url))
    const child = spawn(process.execPath, [main, ...args], { env, timeout: 50_000 })
    let [out, err] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      err += text
    })
    child.on('close', (code) => resolve({ code, out, err }))
  })
}

test('--json writes one object a line and nothing else', async () => {
  const { code, out } = await bench('--json', '--no-peers', '--only', 'local', '--turns', '1')
  expect(code).toBe(0)
  const rows = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(rows.map((row) => row.name)).toEqual(['local forward per node, 3×3 adds', 'local backward per node, 3×3 adds'])
  for (const row of rows) {
    expect(Object.keys(row)).toEqual(['name', 'unit', 'ours', 'limit', 'peers', 'aim', 'met', 'warm', 'first'])
    expect(row).toMatchObject({ unit: 'µs', aim: 1, met: row.ours <= 1 })
    for (const figure of [row.ours, row.limit, row.warm, row.first, ...Object.values(row.peers)]) expect(figure).toBeGreaterThan(0)
  }
})

test.each([
  [['--onyl', 'x'], /Unknown option '--onyl'/],
  [['--no-peers', '--only', 'no such row'], /there are: round trip of an empty call; /],
])('%j is refused', async (args, message) => {
  const { code, out, err } = await bench(...args)
  expect([code, out]).toEqual([2, ''])
  expect(err).toMatch(message)
})
