/** Memory does not grow in long loops: JavaScript's heap, array buffers, the shared heap, and the process (rss). */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import type { Sample } from '../fixtures/memory-loops.js'

const LIMIT_MS = 30 * 60_000
const MEBIBYTE = 2 ** 20
/** How far samples may differ, in bytes. */
const SLACK = { heapUsed: 4 * MEBIBYTE, arrayBuffers: 16 * MEBIBYTE, rss: 96 * MEBIBYTE, heldBytes: 64 * MEBIBYTE }

async function run(loop: string, count: number): Promise<Sample[]> {
  const { NODE_OPTIONS: _, ...env } = process.env
  const script = fileURLToPath(new URL('../fixtures/memory-loops.js', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [script, loop, String(count)], { env, timeout: LIMIT_MS })
  return JSON.parse(stdout) as Sample[]
}

test.each([
  ['operations', 1_000_000],
  ['small-steps', 100_000],
  ['large-steps', 4000],
])(
  '%s, %d times, end with as much memory as they had after a quarter',
  async (loop, count) => {
    const samples = await run(loop, count)
    console.log(
      loop,
      samples.map((s) =>
        Object.entries(s)
          .map(([k, v]) => (k === 'done' ? v : `${k} ${(v / MEBIBYTE).toFixed(1)} MiB`))
          .join(' '),
      ),
    )
    expect(samples.map(({ done }) => done)).toEqual([0.25, 0.5, 0.75, 1].map((share) => share * count))
    const [first] = samples
    for (const name of Object.keys(SLACK) as (keyof typeof SLACK)[]) {
      for (const later of samples.slice(1)) expect(later[name]).toBeLessThanOrEqual(first![name] + SLACK[name])
    }
  },
  LIMIT_MS,
)
