/** If PyTorch dies, the comparison fails. Shell scripts play PyTorch. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import type { Program } from './builder.fixture.js'
import { Torch } from './torch.fixture.js'

const PROGRAMS: readonly Program[] = Array.from({ length: 6 }, (_, seed) => ({ seed, leaves: [], steps: [] }))
const folders: string[] = []

/** The path of a program that greets as PyTorch's side does and then does this, at its first start; later it does that. */
function standIn(first: string, later: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-torch-'))
  folders.push(folder)
  const path = join(folder, 'python')
  const greet = `echo '{"torch":"0"}'`
  writeFileSync(
    path,
    `#!/bin/sh\nif [ -e "$0.again" ]; then ${later}; fi\ntouch "$0.again"\n${greet}\n${first}\n`.replaceAll('GREET', greet),
    {
      mode: 0o755,
    },
  )
  return path
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

test('a program that crashes it has no outcome, the others have theirs', async () => {
  const answer = `echo '{"steps":[],"end":{},"hooks":{}}'`
  const torch = await Torch.start(
    standIn(`read line; ${answer}; exit 1`, `GREET; read line; for i in 1 2 3 4; do ${answer}; done; read line`),
  )
  const outcomes = await torch.run(PROGRAMS)
  torch.close()
  expect(outcomes.map((one) => one !== null)).toEqual([true, false, true, true, true, true])
  expect(torch.crashes).toBe(1)
})

test('one that does not start again is an error with its words', async () => {
  const torch = await Torch.start(standIn('read line; exit 1', 'echo no memory >&2; exit 1'))
  await expect(torch.run(PROGRAMS)).rejects.toThrow('PyTorch has crashed, and did not start again: no memory')
})

test('one that crashes again and again is an error', async () => {
  const torch = await Torch.start(standIn('read line; exit 1', 'GREET; read line; echo of this >&2; exit 1'))
  await expect(torch.run(PROGRAMS)).rejects.toThrow('PyTorch has crashed 4 times in 4 programs, last with: of this')
})
