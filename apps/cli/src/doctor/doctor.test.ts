/** The checks of doctor, for machines other than this one. */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { judgeBlas } from './blas.js'
import { judgeClock } from './clock.js'
import { type Finding, findingText } from './finding.js'
import { computeOn, judgeWasm } from './kernels.js'
import { judgeLauncher } from './launcher.js'
import { judgeCores, judgeHeap, judgeMemory, judgeNode, judgeOpenFiles, type MachineFacts, readMachine } from './machine.js'
import { judgeHostname, judgePorts, judgeUnixSockets } from './network.js'
import { judgeTypescript } from './typescript.js'

/** Windows has none: there `judgeUnixSockets` asks for none. */
const testSockets = process.platform === 'win32' ? test.skip : test

const GIB = 1024 ** 3
const FACTS: MachineFacts = {
  node: '24.3.0',
  cores: 8,
  coresLimit: null,
  memoryBytes: 16 * GIB,
  freeBytes: 8 * GIB,
  memoryLimitBytes: null,
  heapLimitBytes: 4 * GIB,
  openFiles: 65_536,
  addressSpaceBytes: null,
  addressSpaceUsedBytes: GIB,
}

/** CLI-70: what is not ok says what it means and what to do. */
function verdict(finding: Finding): string {
  if (finding.verdict !== 'ok') {
    expect(finding.means).toMatch(/\.$/)
    expect(finding.todo).toBeTruthy()
  }
  return finding.verdict
}

testSockets('CLI-71 the folder for a socket is gone however the process ends', async () => {
  const folders: string[] = []
  const ends: (() => void)[] = []
  const judged = judgeUnixSockets(
    (end) => {
      ends.push(end)
      return () => void ends.splice(ends.indexOf(end), 1)
    },
    async ({ path }) => {
      folders.push(dirname(path))
      expect(existsSync(dirname(path))).toBe(true)
      // Nobody reads the output any more: this never returns.
      for (const end of ends) end()
      expect(existsSync(dirname(path))).toBe(false)
      return null
    },
  )
  expect(verdict(await judged)).toBe('ok')
  expect([folders.length, ends]).toEqual([1, []])
})

testSockets('CLI-70 where no Unix socket can be had, the calls that fail for it are named', async () => {
  const judge = (socket: () => Promise<string | null>) => judgeUnixSockets(() => () => {}, socket)
  const refused = await judge(async () => 'listen EPERM')
  expect([verdict(refused), refused.found, refused.means]).toEqual([
    'warn',
    'listen EPERM',
    expect.stringContaining('launch({ processes }) fails'),
  ])
  const { TMPDIR } = process.env
  process.env.TMPDIR = '/is-not-there'
  try {
    expect(await judge(async () => null)).toMatchObject({ verdict: 'warn', found: expect.stringContaining('ENOENT') })
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  }
})

describe('the machine', () => {
  test.each([
    ['18.20.0', 'fail'],
    ['20.20.2', 'warn'],
    ['22.17.1', 'warn'],
    ['22.18.0', 'ok'],
    ['23.5.0', 'warn'],
    ['23.6.0', 'warn'],
    ['24.0.0', 'ok'],
  ])('CLI-70 Node %s: %s', (node, expected) => {
    expect(verdict(judgeNode({ ...FACTS, node }))).toBe(expected)
  })

  test('CLI-70 an old Node, and one that only lacks the stripping of types', () => {
    expect(judgeNode({ ...FACTS, node: '20.20.2' }).means).toContain('Node 20 gets no fixes')
    expect(judgeNode({ ...FACTS, node: '22.17.1' }).means).toBe('Node strips types from 22.18 on; here TypeScript needs tsx.')
    expect(['23.5.0', '23.6.0'].map((node) => judgeNode({ ...FACTS, node }).means)).toEqual([
      'Node 23 gets no fixes any longer. Node strips types from 23.6 on; here TypeScript needs tsx.',
      'Node 23 gets no fixes any longer.',
    ])
  })

  test('CLI-70 cores, as far as a container may use them', () => {
    expect(verdict(judgeCores(FACTS))).toBe('ok')
    expect(verdict(judgeCores({ ...FACTS, coresLimit: 1.5 }))).toBe('warn')
    expect(judgeCores({ ...FACTS, coresLimit: 3.5 })).toMatchObject({ verdict: 'ok', found: '8, of which the container may use 3.5' })
    expect(judgeCores({ ...FACTS, coresLimit: 64 }).found).toBe('8')
    expect(verdict(judgeCores({ ...FACTS, cores: 1 }))).toBe('warn')
  })

  test('CLI-70 memory, as far as a container may use it; open files', () => {
    expect(verdict(judgeMemory(FACTS))).toBe('ok')
    expect(verdict(judgeMemory({ ...FACTS, memoryLimitBytes: GIB / 2 }))).toBe('warn')
    expect(verdict(judgeOpenFiles(FACTS))).toBe('ok')
    expect(verdict(judgeOpenFiles({ ...FACTS, openFiles: null }))).toBe('ok')
    expect(verdict(judgeOpenFiles({ ...FACTS, openFiles: 256 }))).toBe('warn')
  })

  test('CLI-70 limits of containers, of both kinds, and of processes', () => {
    const read = (files: Record<string, string>, constrained = 0): MachineFacts => readMachine((path) => files[path] ?? null, constrained)
    expect(read({})).toMatchObject({ coresLimit: null, memoryLimitBytes: null, openFiles: null, addressSpaceBytes: null })
    expect(read({ '/sys/fs/cgroup/cpu.max': 'max 100000\n', '/sys/fs/cgroup/memory.max': 'max\n' })).toMatchObject({
      coresLimit: null,
      memoryLimitBytes: null,
    })
    expect(read({ '/sys/fs/cgroup/cpu.max': '150000 100000\n', '/sys/fs/cgroup/memory.max': '536870912\n' })).toMatchObject({
      coresLimit: 1.5,
      memoryLimitBytes: GIB / 2,
    })
    const v1 = {
      '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '200000\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
      '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
    }
    expect(read(v1)).toMatchObject({ coresLimit: 2, memoryLimitBytes: null })
    // A cgroup of a batch system or of systemd lies below the one that is seen at the root.
    for (const files of [
      {} as Record<string, string>,
      { '/sys/fs/cgroup/memory.max': 'max\n' },
      { '/sys/fs/cgroup/memory.max': `${4 * GIB}\n` },
    ])
      expect(read(files, 2 * GIB).memoryLimitBytes).toBe(2 * GIB)
    expect(read({}, 2 ** 64).memoryLimitBytes).toBeNull()
    const limits =
      'Limit Soft Limit Hard Limit Units\nMax open files            1024                 524288               files\nMax address space         unlimited            unlimited            bytes\n'
    expect(read({ '/proc/self/limits': limits })).toMatchObject({ openFiles: 1024, addressSpaceBytes: null })
  })

  test('CLI-70 the shared heap: all of it, a part, none', () => {
    const upTo = (most: number) => (bytes: number) => {
      if (bytes > most) throw new RangeError('no room')
    }
    expect(verdict(judgeHeap(upTo(4 * GIB), FACTS))).toBe('ok')
    expect(judgeHeap(upTo(GIB), FACTS)).toMatchObject({ verdict: 'warn', found: '1.0 GiB can be reserved' })
    expect(judgeHeap(upTo(4 * GIB), { addressSpaceBytes: 6 * GIB, addressSpaceUsedBytes: 2 * GIB })).toMatchObject({
      verdict: 'warn',
      found: '512 MiB can be reserved (ulimit -v is 6.0 GiB)',
      means: expect.stringContaining('room for some 4 worker threads'),
    })
    const none = judgeHeap(upTo(0), FACTS)
    expect([verdict(none), none.found, none.means]).toEqual([
      'fail',
      'not even 64 MiB can be reserved',
      expect.stringContaining('HEAP_UNAVAILABLE'),
    ])
  })
})

describe('devices', () => {
  test('CLI-70 wasm computes on this machine as the loops of js do', async () => {
    expect(await judgeWasm(computeOn)).toMatchObject({ verdict: 'ok' })
  })

  test('CLI-70 one that throws, and one that is wrong; without wasm little works', async () => {
    const right = (await computeOn('js')).slice()
    const broken = async (device: unknown): Promise<readonly number[]> => {
      if (device !== 'js') throw new Error('no SIMD')
      return right
    }
    expect(await judgeWasm(broken)).toMatchObject({
      verdict: 'fail',
      found: 'does not work: no SIMD',
      todo: expect.stringContaining('SIMD is missing'),
    })
    // Not by the constructor: errors-of-tests.mjs would take it for a real one.
    const noHeap = Object.assign(new Error('heap: a refusal.'), { name: 'PostgradError', code: 'HEAP_UNAVAILABLE', op: 'heap' })
    const withoutHeap = async (device: unknown): Promise<readonly number[]> => {
      if (device !== 'js') throw noHeap
      return right
    }
    expect(await judgeWasm(withoutHeap)).toMatchObject({
      verdict: 'fail',
      found: 'does not work: heap: a refusal.',
      todo: expect.stringContaining('ulimit -v'),
    })
    const wrong = async (device: unknown) => (device === 'js' ? right : right.map((value) => value + 1))
    expect((await judgeWasm(wrong)).found).toMatch(/computes something else: off by 1/)
    expect(verdict(await judgeWasm(async (device) => (device === 'js' ? right : [Number.NaN])))).toBe('fail')
  })
})

describe('blas', () => {
  const library = (kernels: string | null) => () => ({ library: 'OpenBLAS', file: 'libopenblas.so.0', kernels })

  test('CLI-70 the library and the processor whose kernels it took; old kernels are a warning', () => {
    expect(judgeBlas(library('SkylakeX'))).toEqual({
      name: 'device blas',
      verdict: 'ok',
      found: 'OpenBLAS (libopenblas.so.0, kernels of SkylakeX)',
    })
    expect(judgeBlas(library(null))).toMatchObject({ verdict: 'ok', found: 'OpenBLAS (libopenblas.so.0)' })
    expect(judgeBlas(library('Prescott'))).toMatchObject({ verdict: 'warn', todo: expect.stringContaining('OPENBLAS_CORETYPE') })
  })

  test('CLI-70 without a library nothing is wrong; another error is not hidden', () => {
    // Not by the constructor: errors-of-tests.mjs would take it for a real one.
    const none = Object.assign(new Error('none'), { name: 'PostgradError', code: 'BLAS_NOT_FOUND', op: 'device' })
    const throwing = (error: Error) => () => {
      throw error
    }
    expect(judgeBlas(throwing(none))).toMatchObject({ verdict: 'ok', found: 'not there', means: expect.stringContaining('optional') })
    expect(() => judgeBlas(throwing(new TypeError('a bug')))).toThrow('a bug')
  })
})

describe('the network', () => {
  test('CLI-70 ports: all, some, none', async () => {
    const taken =
      (...ports: number[]) =>
      async (port: number) =>
        ports.includes(port) ? 'in use' : null
    expect(await judgePorts([5, 7], taken())).toMatchObject({ name: 'ports 5-7', verdict: 'ok', found: 'all 3 are free' })
    expect(await judgePorts([5, 7], taken(6))).toMatchObject({ verdict: 'warn', found: '2 of 3 are free; not 6 (in use)' })
    expect((await judgePorts([1, 9], taken(1, 2, 3, 4, 5))).found).toContain('3 (in use) and 2 more')
    expect(verdict(await judgePorts([5, 5], taken(5)))).toBe('fail')
    expect(await judgePorts([5, 5], taken())).toMatchObject({ name: 'ports 5-5', verdict: 'ok', found: 'it is free' })
  })

  test('CLI-70 the own name', () => {
    expect(verdict(judgeHostname('me', ['10.0.0.1', '127.0.1.1']))).toBe('ok')
    expect(verdict(judgeHostname('me', ['127.0.1.1', '::1']))).toBe('warn')
    expect(judgeHostname('me', null)).toMatchObject({ verdict: 'warn', todo: expect.stringContaining('--advertise') })
  })
})

describe('clocks', () => {
  const clocks = (step: number, wallRate: number, wallBegan = Date.UTC(2026, 0)) => {
    let now = 0
    return {
      now: () => (now += step),
      wallMs: () => wallBegan + now * wallRate,
      sleep: async (ms: number) => {
        now += ms
      },
    }
  }
  test('CLI-70 one that goes back, one that is being set, one that says 1970', async () => {
    expect(verdict(await judgeClock(clocks(0, 1)))).toBe('ok')
    expect(verdict(await judgeClock(clocks(-0.1, 1)))).toBe('fail')
    expect(verdict(await judgeClock(clocks(0, 1.5)))).toBe('warn')
    expect(verdict(await judgeClock(clocks(0, 1, 0)))).toBe('warn')
  })
})

test('CLI-70 TypeScript', () => {
  expect(verdict(judgeTypescript({ tsx: null, strips: true }))).toBe('ok')
  expect(verdict(judgeTypescript({ tsx: '/x', strips: false }))).toBe('ok')
  expect(judgeTypescript({ tsx: null, strips: false })).toMatchObject({ verdict: 'warn', todo: 'npm install tsx' })
})

test('CLI-70 what run would take the environment for', () => {
  expect(verdict(judgeLauncher({}))).toBe('ok')
  expect(judgeLauncher({ RANK: '0', WORLD_SIZE: '2', MASTER_ADDR: 'a', MASTER_PORT: '1' }).found).toContain(
    'rank 0 of 2, and meets the others at a:1',
  )
  expect(judgeLauncher({ RANK: '0' })).toMatchObject({ verdict: 'warn', found: expect.stringContaining('WORLD_SIZE is missing') })
})

test('CLI-70 a finding as text, in columns, coloured or not', () => {
  const finding: Finding = { name: 'x', verdict: 'warn', found: 'little', means: 'It is slow.', todo: 'Wait.' }
  expect(findingText(finding, 3, false)).toBe('warn  x    little\n           It is slow.\n           Wait.\n')
  expect(findingText(finding, 3, true)).toContain('\x1b[33mwarn\x1b[0m')
  expect(findingText({ name: 'x', verdict: 'ok', found: 'much' }, 3, false)).toBe('ok    x    much\n')
})
