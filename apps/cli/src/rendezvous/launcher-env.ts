/**
 * Which rank of many processes this one has: by flags, or by the variables that torchrun, Open MPI, Slurm and Kubernetes' indexed jobs set. Pure functions, which
 * `run-command.ts` calls. Flags win over variables. If only some of a launcher's variables are set, that is an error: with guessed ranks, processes would wait
 * forever.
 */
import { PostgradError } from 'postgrad'
import { masterPort } from 'postgrad/plugin'
import type { Environment } from '../surroundings.js'
import { type HostPort, parseHostPort, parsePort } from './host-port.js'
import { expandNodeList } from './slurm-nodes.js'

export const LAUNCHERS = ['torchrun', 'mpi', 'slurm', 'kubernetes'] as const
export type Launcher = (typeof LAUNCHERS)[number]

/** What this process is among all of them. */
export interface Place {
  readonly rank: number
  readonly worldSize: number
  /** Its place among those of this machine; null: the launcher does not say. */
  readonly localRank: number | null
  /** Where rank 0 listens. */
  readonly master: HostPort
  /** How often the launcher has started it again; 0 at first. */
  readonly restarts: number
  /** Where its rank was found. */
  readonly source: 'flags' | Launcher
}

export interface PlaceFlags {
  readonly rank?: number
  readonly worldSize?: number
  readonly master?: HostPort
  /** Whose variables count; 'auto' (default): those that are there; 'none': nobody's. */
  readonly launcher?: 'auto' | 'none' | Launcher
}

/** torchrun's default. */
const PORT = 29_500
const WORLD_MAX = 65_535

/**
 * @returns null when neither flags nor variables say that this is one of several processes
 * @throws LAUNCHER_ENV_INVALID, with the flag or the variable that is missing or wrong
 */
export function placeOf(env: Environment, flags: PlaceFlags = {}): Place | null {
  const launcher = launcherOf(env, flags.launcher ?? 'auto')
  const hasFlags = flags.rank !== undefined || flags.worldSize !== undefined || flags.master !== undefined
  if (launcher === null && !hasFlags) return null
  const words = launcher === null ? BY_FLAGS : READERS[launcher].read(new Variables(env, launcher))
  const worldSize = flags.worldSize ?? words.worldSize()
  const rank = flags.rank ?? words.rank()
  if (worldSize < 1 || worldSize > WORLD_MAX) throw invalid(`1 to ${WORLD_MAX} processes`, String(worldSize), 'Correct --world-size.')
  if (rank < 0 || rank >= worldSize)
    throw invalid(`a rank from 0 to ${worldSize - 1}, as there are ${worldSize} processes`, String(rank), 'Ranks count from 0.')
  return {
    rank,
    worldSize,
    localRank: words.localRank(),
    master: flags.master ?? masterByHand(env) ?? words.master(),
    restarts: words.restarts(),
    source: flags.rank === undefined && launcher !== null ? launcher : 'flags',
  }
}

/** Whose variables are there; the outermost last, as torchrun runs inside of Slurm and Kubernetes. */
export function launcherOf(env: Environment, wanted: 'auto' | 'none' | Launcher): Launcher | null {
  if (wanted === 'none') return null
  if (wanted !== 'auto') return wanted
  return LAUNCHERS.find((name) => READERS[name].isHere(env)) ?? null
}

/** What a launcher says, asked for only where no flag says it. */
interface Words {
  rank(): number
  worldSize(): number
  localRank(): number | null
  master(): HostPort
  restarts(): number
}

const BY_FLAGS: Words = {
  rank: () => missingFlag('--rank'),
  worldSize: () => missingFlag('--world-size'),
  localRank: () => null,
  master: () => missingFlag('--master'),
  restarts: () => 0,
}

interface Reader {
  isHere(env: Environment): boolean
  read(variables: Variables): Words
}

const READERS: Readonly<Record<Launcher, Reader>> = {
  torchrun: {
    isHere: (env) => has(env, 'RANK') || has(env, 'WORLD_SIZE'),
    read: (variables) => ({
      rank: () => variables.integer('RANK', '--rank'),
      worldSize: () => variables.integer('WORLD_SIZE', '--world-size'),
      localRank: () => variables.integerIfAny('LOCAL_RANK'),
      master: () => ({ host: variables.text('MASTER_ADDR', '--master'), port: torchPort(variables) }),
      restarts: () => variables.integerIfAny('TORCHELASTIC_RESTART_COUNT') ?? 0,
    }),
  },
  mpi: {
    isHere: (env) => has(env, 'OMPI_COMM_WORLD_RANK') || has(env, 'OMPI_COMM_WORLD_SIZE'),
    read: (variables) => ({
      rank: () => variables.integer('OMPI_COMM_WORLD_RANK', '--rank'),
      worldSize: () => variables.integer('OMPI_COMM_WORLD_SIZE', '--world-size'),
      localRank: () => variables.integerIfAny('OMPI_COMM_WORLD_LOCAL_RANK'),
      master: () => mpiMaster(variables),
      restarts: () => 0,
    }),
  },
  slurm: {
    isHere: isSlurmTask,
    read: (variables) => ({
      rank: () => variables.integer('SLURM_PROCID', '--rank'),
      // Of a step of fewer tasks than the job has.
      worldSize: () => variables.integerIfAny('SLURM_STEP_NUM_TASKS') ?? variables.integer('SLURM_NTASKS', '--world-size'),
      localRank: () => variables.integerIfAny('SLURM_LOCALID'),
      master: () => slurmMaster(variables),
      restarts: () => variables.integerIfAny('SLURM_RESTART_COUNT') ?? 0,
    }),
  },
  kubernetes: {
    isHere: (env) => has(env, 'JOB_COMPLETION_INDEX') || has(env, 'POSTGRAD_WORLD_SIZE'),
    read: (variables) => ({
      rank: () => variables.integer('JOB_COMPLETION_INDEX', '--rank'),
      worldSize: () => variables.integer('POSTGRAD_WORLD_SIZE', '--world-size'),
      localRank: () => null,
      // `masterByHand` has looked already.
      master: () => variables.missing('POSTGRAD_MASTER', '--master'),
      restarts: () => 0,
    }),
  },
}

/** From this id on, steps are not from `srun`: an interactive shell, the batch script, the daemon (they have the last ids of 32 bits). */
const SLURM_SPECIAL_STEPS = 0xffff_fff0

/** The batch script has SLURM_PROCID, too, but is not a task: `postgrad run --workers 4` in it is a run of its own. */
function isSlurmTask(env: Environment): boolean {
  if (!has(env, 'SLURM_PROCID')) return false
  const step = env.SLURM_STEP_ID ?? env.SLURM_STEPID
  return step !== undefined ? Number(step) < SLURM_SPECIAL_STEPS : has(env, 'SLURM_STEP_NODELIST')
}

function torchPort(variables: Variables): number {
  const text = variables.text('MASTER_PORT', '--master')
  const port = parsePort(text)
  if (port === null) throw invalid('a port from 1 to 65535 in MASTER_PORT', `'${text}'`, 'Correct it, or pass --master HOST:PORT.')
  return masterPort(port, variables.env)
}

/** MPI does not say where rank 0 is, unless all are here. */
function mpiMaster(variables: Variables): HostPort {
  const [local, all] = [variables.integerIfAny('OMPI_COMM_WORLD_LOCAL_SIZE'), variables.integerIfAny('OMPI_COMM_WORLD_SIZE')]
  if (local !== null && local === all) return { host: '127.0.0.1', port: PORT }
  return variables.missing('POSTGRAD_MASTER', '--master')
}

/** Below the ports that systems give to outgoing connections; jobs that share a machine have others. */
const [SLURM_PORT_FIRST, SLURM_PORTS] = [20_000, 12_000]
const STEP_STRIDE = 101

function slurmMaster(variables: Variables): HostPort {
  const variable = has(variables.env, 'SLURM_STEP_NODELIST') ? 'SLURM_STEP_NODELIST' : 'SLURM_JOB_NODELIST'
  const hosts = expandNodeList(variables.text(variable, '--master'), variable)
  const job = variables.integer('SLURM_JOB_ID', '--master')
  const step = variables.integerIfAny('SLURM_STEP_ID') ?? 0
  return { host: hosts[0]!, port: SLURM_PORT_FIRST + ((job + STEP_STRIDE * step) % SLURM_PORTS) }
}

/** POSTGRAD_MASTER, for launchers that do not say where rank 0 is, or say it wrong. */
function masterByHand(env: Environment): HostPort | null {
  const text = env.POSTGRAD_MASTER
  if (text === undefined || text === '') return null
  const master = parseHostPort(text)
  if (master === null) throw invalid('HOST:PORT in POSTGRAD_MASTER', `'${text}'`, 'Write it as in node1:29500 or [::1]:29500.')
  return master
}

const has = (env: Environment, name: string): boolean => env[name] !== undefined && env[name] !== ''

/** The variables of one launcher. */
class Variables {
  readonly env: Environment
  private readonly launcher: Launcher

  constructor(env: Environment, launcher: Launcher) {
    this.env = env
    this.launcher = launcher
  }

  text(name: string, flag: string): string {
    return has(this.env, name) ? this.env[name]! : this.missing(name, flag)
  }

  integer(name: string, flag: string): number {
    return this.integerIfAny(name) ?? this.missing(name, flag)
  }

  integerIfAny(name: string): number | null {
    if (!has(this.env, name)) return null
    const text = this.env[name]!
    if (/^\d{1,15}$/.test(text)) return Number(text)
    throw invalid(
      `an integer from 0 in ${name}`,
      `'${text}'`,
      `Correct it, or pass --launcher none if ${TITLES[this.launcher]} has not started this process.`,
    )
  }

  missing(name: string, flag: string): never {
    throw new PostgradError('LAUNCHER_ENV_INVALID', {
      op: 'run',
      message: `${TITLES[this.launcher]} seems to have started this process, but ${name} is missing`,
      remedy: `Set it, or pass ${flag}; --launcher none runs the program on this machine alone.`,
      values: { launcher: this.launcher, variable: name },
    })
  }
}

const TITLES: Readonly<Record<Launcher, string>> = {
  torchrun: 'torchrun',
  mpi: 'Open MPI',
  slurm: 'Slurm',
  kubernetes: 'an indexed job of Kubernetes',
}

function missingFlag(flag: string): never {
  throw new PostgradError('LAUNCHER_ENV_INVALID', {
    op: 'run',
    message: `${flag} is missing, and no launcher has set it`,
    remedy: 'A process that joins others needs --rank R, --world-size N and --master HOST:PORT.',
    values: { flag },
  })
}

function invalid(expected: string, got: string, remedy: string): PostgradError {
  return new PostgradError('LAUNCHER_ENV_INVALID', { op: 'run', expected, got, remedy })
}
