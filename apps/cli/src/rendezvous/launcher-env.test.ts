/** Which rank this process has, from the variables and flags of launchers and people. */
import { describe, expect, test } from '@jest/globals'
import { type PlaceFlags, placeOf } from './launcher-env.js'

const TORCHRUN = { RANK: '3', WORLD_SIZE: '8', LOCAL_RANK: '1', MASTER_ADDR: 'node1', MASTER_PORT: '29400' }
const MPI = {
  OMPI_COMM_WORLD_RANK: '1',
  OMPI_COMM_WORLD_SIZE: '4',
  OMPI_COMM_WORLD_LOCAL_RANK: '1',
  OMPI_COMM_WORLD_LOCAL_SIZE: '2',
  POSTGRAD_MASTER: 'node1:29500',
}
const SLURM = {
  SLURM_PROCID: '5',
  SLURM_NTASKS: '8',
  SLURM_LOCALID: '1',
  SLURM_STEP_ID: '0',
  SLURM_JOB_ID: '1234567',
  SLURM_JOB_NODELIST: 'node[03-06]',
  SLURM_STEP_NODELIST: 'node[04-05]',
}
const KUBERNETES = { JOB_COMPLETION_INDEX: '2', POSTGRAD_WORLD_SIZE: '3', POSTGRAD_MASTER: 'train-0.train:29500' }
const ALL = { ...TORCHRUN, ...MPI, ...SLURM, ...KUBERNETES }

const without = (env: Record<string, string>, ...names: string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)))

describe('variables', () => {
  test('CLI-2 of torchrun', () => {
    expect(placeOf(TORCHRUN)).toEqual({
      rank: 3,
      worldSize: 8,
      localRank: 1,
      master: { host: 'node1', port: 29_400 },
      restarts: 0,
      source: 'torchrun',
    })
    expect(placeOf({ ...without(TORCHRUN, 'LOCAL_RANK'), TORCHELASTIC_RESTART_COUNT: '2' })).toMatchObject({ localRank: null, restarts: 2 })
  })

  test('CLI-4 the port beside one on which the agent of torchrun listens itself', () => {
    const agent = { TORCHELASTIC_USE_AGENT_STORE: 'True' }
    expect(placeOf({ ...TORCHRUN, ...agent })?.master.port).toBe(29_401)
    expect(placeOf({ ...TORCHRUN, ...agent, MASTER_PORT: '65535' })?.master.port).toBe(65_534)
    expect(placeOf({ ...TORCHRUN, TORCHELASTIC_USE_AGENT_STORE: 'False' })?.master.port).toBe(29_400)
  })

  test('CLI-2 of Open MPI, which does not say where rank 0 is unless all are here', () => {
    expect(placeOf(MPI)).toEqual({
      rank: 1,
      worldSize: 4,
      localRank: 1,
      master: { host: 'node1', port: 29_500 },
      restarts: 0,
      source: 'mpi',
    })
    const here = { ...without(MPI, 'POSTGRAD_MASTER'), OMPI_COMM_WORLD_LOCAL_SIZE: '4' }
    expect(placeOf(here)?.master).toEqual({ host: '127.0.0.1', port: 29_500 })
  })

  test('CLI-2 CLI-4 of a step of Slurm: the first host of the step, a port of job and step', () => {
    expect(placeOf(SLURM)).toEqual({
      rank: 5,
      worldSize: 8,
      localRank: 1,
      master: { host: 'node04', port: 20_000 + (1_234_567 % 12_000) },
      restarts: 0,
      source: 'slurm',
    })
    const other = placeOf({ ...SLURM, SLURM_STEP_ID: '1', SLURM_STEP_NUM_TASKS: '6', SLURM_RESTART_COUNT: '1' })!
    expect(other).toMatchObject({ worldSize: 6, restarts: 1 })
    expect(other.master.port).not.toBe(placeOf(SLURM)!.master.port)
    expect(placeOf(without(SLURM, 'SLURM_STEP_NODELIST'))?.master.host).toBe('node03')
  })

  test('CLI-4 ports of Slurm stay where systems give none to outgoing connections', () => {
    for (let job = 0; job < 50_000; job += 97) {
      const { port } = placeOf({ ...SLURM, SLURM_JOB_ID: String(job), SLURM_STEP_ID: String(job % 50) })!.master
      expect(port >= 20_000 && port < 32_000).toBe(true)
    }
  })

  test.each([
    ['no step', without(SLURM, 'SLURM_STEP_ID', 'SLURM_STEP_NODELIST')],
    ['the step of the batch script', { ...SLURM, SLURM_STEP_ID: String(0xffff_fffb) }],
    ['the step of an interactive shell', { ...SLURM, SLURM_STEP_ID: String(0xffff_fffa) }],
  ])('CLI-2 a batch script of Slurm is no task: %s', (_, env) => {
    expect(placeOf(env)).toBeNull()
  })

  test("CLI-2 of Kubernetes' indexed jobs", () => {
    expect(placeOf(KUBERNETES)).toEqual({
      rank: 2,
      worldSize: 3,
      localRank: null,
      master: { host: 'train-0.train', port: 29_500 },
      restarts: 0,
      source: 'kubernetes',
    })
  })

  test('CLI-2 the innermost launcher counts; another may be named', () => {
    expect(placeOf(ALL)?.source).toBe('torchrun')
    expect(placeOf(without(ALL, ...Object.keys(TORCHRUN)))?.source).toBe('mpi')
    expect(placeOf({ ...SLURM, ...KUBERNETES })?.source).toBe('slurm')
    expect(placeOf(ALL, { launcher: 'slurm' })).toMatchObject({ source: 'slurm', rank: 5 })
  })

  test('CLI-1 CLI-3 without any, and where none counts, this process is alone', () => {
    expect(placeOf({})).toBeNull()
    expect(placeOf({ MASTER_ADDR: 'a', SLURM_JOB_ID: '7', PATH: '/bin' })).toBeNull()
    expect(placeOf(ALL, { launcher: 'none' })).toBeNull()
    // An empty variable is none.
    expect(placeOf({ RANK: '', WORLD_SIZE: '' })).toBeNull()
  })
})

describe('flags', () => {
  const FLAGS: PlaceFlags = { rank: 1, worldSize: 2, master: { host: 'me', port: 5 } }

  test('CLI-1 stand by themselves', () => {
    expect(placeOf({}, FLAGS)).toEqual({ ...FLAGS, localRank: null, restarts: 0, source: 'flags' })
    expect(placeOf({ POSTGRAD_MASTER: 'there:7' }, { rank: 0, worldSize: 1 })?.master).toEqual({ host: 'there', port: 7 })
  })

  test('CLI-1 win over variables, each by itself', () => {
    expect(placeOf(TORCHRUN, FLAGS)).toEqual({ ...FLAGS, localRank: 1, restarts: 0, source: 'flags' })
    expect(placeOf(TORCHRUN, { master: { host: 'me', port: 5 } })).toMatchObject({ rank: 3, master: { host: 'me' }, source: 'torchrun' })
    expect(placeOf({ ...TORCHRUN, RANK: 'x' }, { rank: 7 })).toMatchObject({ rank: 7, worldSize: 8 })
    // A variable that a flag replaces may be missing.
    expect(placeOf({ RANK: '0' }, { worldSize: 2, master: { host: 'me', port: 5 } })).toMatchObject({ rank: 0, worldSize: 2 })
    expect(placeOf({ ...KUBERNETES, POSTGRAD_MASTER: 'nonsense' }, { master: { host: 'me', port: 5 } })?.master.host).toBe('me')
  })

  test.each<[PlaceFlags, string]>([
    [{ worldSize: 2, master: { host: 'me', port: 5 } }, '--rank'],
    [{ rank: 0, master: { host: 'me', port: 5 } }, '--world-size'],
    [{ rank: 0, worldSize: 2 }, '--master'],
    [{ ...FLAGS, launcher: 'none' as const, rank: undefined as never }, '--rank'],
  ])('CLI-3 %j: what is missing is named', (flags, flag) => {
    expect(() => placeOf({}, flags)).toThrow(
      expect.objectContaining({ code: 'LAUNCHER_ENV_INVALID', message: expect.stringContaining(`${flag} is missing`) }),
    )
  })
})

describe('half of a launcher', () => {
  const cases: [Record<string, string>, string, string][] = [
    ...['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT'].map(
      (name) => [TORCHRUN, name, 'torchrun'] as [Record<string, string>, string, string],
    ),
    ...['OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'POSTGRAD_MASTER'].map(
      (name) => [MPI, name, 'Open MPI'] as [Record<string, string>, string, string],
    ),
    ...['SLURM_NTASKS', 'SLURM_JOB_ID'].map((name) => [SLURM, name, 'Slurm'] as [Record<string, string>, string, string]),
    [without(SLURM, 'SLURM_STEP_NODELIST'), 'SLURM_JOB_NODELIST', 'Slurm'],
    ...Object.keys(KUBERNETES).map(
      (name) => [KUBERNETES, name, 'an indexed job of Kubernetes'] as [Record<string, string>, string, string],
    ),
  ]
  test.each(cases)('CLI-3 of %j without %s', (env, name, title) => {
    expect(() => placeOf(without(env, name))).toThrow(
      expect.objectContaining({
        code: 'LAUNCHER_ENV_INVALID',
        message: expect.stringMatching(`${title} .*${name} is missing.*--launcher none`),
        values: expect.objectContaining({ variable: name }),
      }),
    )
  })
})

describe('wrong values', () => {
  test.each<[Record<string, string>, RegExp]>([
    [{ ...TORCHRUN, RANK: 'one' }, /an integer from 0 in RANK, got 'one'/],
    [{ ...TORCHRUN, RANK: '-1' }, /an integer from 0 in RANK, got '-1'/],
    [{ ...TORCHRUN, RANK: '8' }, /a rank from 0 to 7, as there are 8 processes, got 8/],
    [{ ...TORCHRUN, WORLD_SIZE: '0' }, /1 to 65535 processes, got 0/],
    [{ ...TORCHRUN, WORLD_SIZE: '65536' }, /1 to 65535 processes/],
    [{ ...TORCHRUN, WORLD_SIZE: '1e3' }, /an integer from 0 in WORLD_SIZE/],
    [{ ...TORCHRUN, MASTER_PORT: '70000' }, /a port from 1 to 65535 in MASTER_PORT, got '70000'/],
    [{ ...KUBERNETES, POSTGRAD_MASTER: 'train-0' }, /HOST:PORT in POSTGRAD_MASTER, got 'train-0'/],
    [{ ...SLURM, SLURM_LOCALID: 'x' }, /an integer from 0 in SLURM_LOCALID/],
  ])('CLI-3 %j', (env, message) => {
    expect(() => placeOf(env)).toThrow(expect.objectContaining({ code: 'LAUNCHER_ENV_INVALID', message: expect.stringMatching(message) }))
  })

  test('CLI-5 a list of hosts that is none', () => {
    const refused = (op: string) => expect.objectContaining({ code: 'NODE_LIST_INVALID', op })
    expect(() => placeOf({ ...SLURM, SLURM_STEP_NODELIST: 'node[1' })).toThrow(refused('SLURM_STEP_NODELIST'))
    const job = { ...without(SLURM, 'SLURM_STEP_NODELIST'), SLURM_JOB_NODELIST: 'node[1' }
    expect(() => placeOf(job)).toThrow(refused('SLURM_JOB_NODELIST'))
  })
})
