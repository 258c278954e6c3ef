/** Restarts of a run, its exit codes and the report of a crash, by the command itself. */
import { describe, expect, test } from '@jest/globals'
import { MAIN, PROGRAM, postgrad, postgradWith, run } from '../process.fixture.js'

const again = (policy: string, tries: number, how: string, ...more: string[]) =>
  postgrad('run', PROGRAM, '--workers', '3', '--restart', policy, ...more, '--', 'again', String(tries), how)

describe('restarts', () => {
  test('CLI-30 CLI-31 all workers, until it works', async () => {
    const { code, out, err } = await again('all', 2, 'dies')
    expect({ code, err }).toMatchObject({ code: 0 })
    for (const name of ['worker0', 'worker1', 'worker2']) expect(out).toContain(`${name} succeeds at 2\n`)
    expect(err.match(/all workers are started again \(\d of 3\)/g)).toEqual([
      'all workers are started again (1 of 3)',
      'all workers are started again (2 of 3)',
    ])
  })

  test('CLI-30 CLI-31 only the one that failed', async () => {
    const { code, out, err } = await again('failed', 2, 'throws')
    expect({ code, err }).toMatchObject({ code: 0 })
    expect(out.match(/worker[02] tries .*/g)?.sort()).toEqual(['worker0 tries 0', 'worker2 tries 0'])
    expect(out.match(/worker1 tries .*/g)).toEqual(['worker1 tries 0', 'worker1 tries 1', 'worker1 tries 2'])
    expect(err).toContain("worker 'worker1'")
    expect(err.match(/\[worker1\] restarting\n/g)).toHaveLength(2)
  })

  test('CLI-31 CLI-22 there is an end of it: the exit code of the last failure, with the last lines of one that died', async () => {
    const [thrown, died] = await Promise.all([
      again('all', 9, 'throws', '--max-restarts', '1'),
      again('failed', 9, 'dies', '--max-restarts', '1'),
    ])
    expect(thrown.code).toBe(1)
    expect(thrown.out.match(/worker1 tries .*/g)).toEqual(['worker1 tries 0', 'worker1 tries 1'])
    expect(died.code).toBe(4)
    expect(died.err).toContain('  its last lines:\n    worker1 tries 0\n    worker1 tries 1\n')
  })

  test('CLI-30 one that was done and dies while others are not is started again; without a policy nobody is', async () => {
    const [supervised, plain] = await Promise.all([
      postgrad('run', PROGRAM, '--workers', '2', '--restart', 'failed', '--', 'late-death'),
      postgrad('run', PROGRAM, '--workers', '2', '--', 'late-death', '1'),
    ])
    expect({ code: supervised.code, err: supervised.err }).toMatchObject({ code: 0 })
    expect(supervised.out.match(/worker1 .*/g)).toEqual(['worker1 serves 0', 'worker1 serves 1'])
    expect(supervised.out).toContain('worker0 was answered by 1\n')
    expect(plain.code).toBe(1)
    expect(plain.out).toContain('worker1 serves 0\n')
  })

  test('CLI-30 Ctrl-C while some are done and wait for the others', async () => {
    let sent = false
    const args = [MAIN, 'run', PROGRAM, '--workers', '2', '--restart', 'failed', '--', 'one-waits']
    const { code } = await run(process.execPath, args, (out, kill) => {
      if (sent || !out.includes('worker0 waits')) return
      sent = true
      kill('SIGINT')
    })
    expect(code).toBe(130)
  })

  test('CLI-31 no restart after --timeout', async () => {
    const { code, err } = await postgrad('run', PROGRAM, '--timeout', '200', '--restart', 'all', '--', 'forever')
    expect(code).toBe(1)
    expect(err).not.toContain('started again')
  })
})

describe('output', () => {
  test('CLI-21 lines of JSON alone are on stdout', async () => {
    const { code, out, err } = await postgrad('run', PROGRAM, '--workers', '2', '--output', 'json', '--', 'complain')
    expect([code, err]).toEqual([0, ''])
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    for (const worker of ['worker0', 'worker1']) {
      const of = lines.filter((line) => line.worker === worker)
      expect(of.map(({ event, text }) => event ?? text)).toEqual(['started', expect.anything(), expect.anything()])
      expect(of).toContainEqual({ time: expect.stringMatching(/^\d{4}-.*Z$/), worker, stream: 'stderr', text: 'a complaint' })
    }
  })

  test('CLI-20 --prefix, and colours where they are asked for', async () => {
    const [plain, coloured] = await Promise.all([
      postgradWith({ NO_COLOR: '1' }, 'run', PROGRAM, '--workers', 'a,', '--prefix', '--', 'complain'),
      postgrad('run', PROGRAM, '--workers', '2', '--prefix', '--color'),
    ])
    expect(plain.err).toContain('[a] a complaint\n')
    expect(coloured.out).toContain('\x1b[36m[worker0]\x1b[0m worker0 0/2')
    expect(coloured.out).toContain('\x1b[33m[worker1]\x1b[0m worker1 1/2')
  })
})

test('CLI-3 CLI-10 half of a launcher is a wrong command line; --launcher none runs here', async () => {
  const half = await postgradWith({ RANK: '1' }, 'run', PROGRAM)
  expect([half.code, half.out]).toEqual([2, ''])
  expect(half.err).toContain('torchrun seems to have started this process, but WORLD_SIZE is missing')
  const alone = await postgradWith({ RANK: '1' }, 'run', PROGRAM, '--launcher', 'none')
  expect(alone.code).toBe(0)
})
