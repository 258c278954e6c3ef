/**
 * `init`: this process becomes a worker of a group, without a launcher: one of several that run the same program, on this machine or on others. They meet by a store
 * (`meeting-store.ts`), know each other by a log in it (`group-log.ts`), and open connections when they first have something to say. PyTorch: `rpc.init_rpc`.
 */
import { randomInt } from 'node:crypto'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { timeLimit, tooManyOpenFiles, WORKER_ID_MAX, whatOf } from '@postgrad/base/internal'
import type { MailboxOptions, RoleRights } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import { type DeviceSpec, device, setComputeThreads } from '@postgrad/tensor'
import { checkComputeThreads, HeapRoom, HeapTransport, hasKernelPause, installKernelPause } from '@postgrad/tensor/internal'
import { PrefixStore } from '@postgrad/transport'
import {
  type Credentials,
  callListener,
  Exchange,
  formatAddress,
  oneOfSeveral,
  RealClock,
  SOCKET_LIMITS,
  StayAwake,
} from '@postgrad/transport/internal'
import { checkAccess, makeRuntime } from '../admin/make-runtime.js'
import { sharedHeap } from '../host/shared-heap.js'
import { checkBoolean, checkNames, type OptionNames } from '../options/check-options.js'
import { workerNames } from '../options/worker-names.js'
import { socketPath } from '../processes/process-protocol.js'
import { makeSocketFolder, removeSocketFolder } from '../processes/socket-folder.js'
import { claim } from './claim.js'
import { type ConnectionOptions, deathRemedy, type GroupTransport, limitsOf, places } from './connections.js'
import { Group } from './group.js'
import { GroupLog } from './group-log.js'
import { type Place, type PlaceOptions, placeOf, whereOf } from './init-method.js'
import { Keeper } from './keeper.js'
import { meet, prefixOf } from './meeting-store.js'
import { Member } from './member.js'
import type { Visitor } from './presence.js'
import { Refusals } from './refusals.js'

/** Options of `init`. */
export interface InitOptions extends PlaceOptions {
  /** The worker's name. Default: `worker` and its rank, such as worker0. Required if neither rank nor world size is given. */
  readonly name?: string
  /** The group's name. A process with another name for the group is refused. Default 'postgrad'. */
  readonly cluster?: string
  /** The key or certificate with which this process proves its identity. Required for connections to other machines. Default: none. */
  readonly credentials?: Credentials
  /**
   * The file in which rank 0 keeps the store. If rank 0 dies, another process can take rank 0 and continue from this file. Start each new group with a new file.
   * Default: the store is only in memory.
   */
  readonly storeFile?: string
  /** The address on which workers listen for other machines. Default: loopback if the processes meet at a file or on loopback, else all addresses. */
  readonly bind?: string
  /** The name or address by which other machines reach this one. Default: the first address of this machine that is not loopback. */
  readonly advertise?: string
  /** The first and the last port of a range. This process listens on a free port of this range. Default: any free port. */
  readonly ports?: readonly [first: number, last: number]
  /** The ways in which peers may reach this process: 'unix' from this machine, 'tcp' from any. Default: both. Peers prefer 'unix' where it works. PyTorch: `_transports`. */
  readonly transports?: readonly GroupTransport[]
  /** When this process gives up a connection. */
  readonly connection?: ConnectionOptions
  /** How long all processes together may take to join, in ms. Default 300,000, as in PyTorch. 0: without a limit. */
  readonly timeoutMs?: number
  /** The device on which this worker computes. Default 'wasm'. */
  readonly device?: DeviceSpec
  /**
   * How many threads compute the large operations of this worker: its own thread, and helper threads. Processes on one machine share its cores, so give each of them
   * its part. Default: as `setComputeThreads` has set it, or 1. PyTorch: `torch.set_num_threads`.
   */
  readonly computeThreads?: number
  /** The seed of all random numbers. Give all processes the same seed: each worker derives its own seed from it. Default 0. */
  readonly seed?: number
  /** The time limit of a call that has no `timeoutMs` of its own, in ms. Default 60,000. 0: without a limit. */
  readonly rpcTimeoutMs?: number
  /**
   * The rights of each role at this worker: `{ observer: { call: ['selectAction'] } }`. All other requests of a peer with this role fail with NOT_PERMITTED. A role
   * that is not listed has no limits. Rank 0's `rights` also apply to the group's store. See `rolePolicy`.
   */
  readonly rights?: Readonly<Record<string, RoleRights>>
  /** Whether an error that this process sends to a peer contains its stack, which has names of files and folders. Default true. */
  readonly remoteStacks?: boolean
  /** How many calls of one worker, and how many bytes of calls, may wait at another. Further calls fail with MAILBOX_FULL. */
  readonly mailbox?: MailboxOptions
  /**
   * Called when this process refuses a connection: with AUTH_FAILED, VERSION_MISMATCH or CLUSTER_MISMATCH, and the other end's address in `values.from`. Called at most
   * 5 times a minute, and once a minute for the same address and code. Default: postgrad prints a warning.
   */
  readonly onConnectionRefused?: (error: PostgradError) => void
}

const OPTIONS: OptionNames<InitOptions> = {
  initMethod: true,
  rank: true,
  worldSize: true,
  name: true,
  cluster: true,
  credentials: true,
  storeFile: true,
  bind: true,
  advertise: true,
  ports: true,
  transports: true,
  connection: true,
  timeoutMs: true,
  device: true,
  computeThreads: true,
  seed: true,
  rpcTimeoutMs: true,
  rights: true,
  remoteStacks: true,
  mailbox: true,
  onConnectionRefused: true,
}

/** Rank 0 waits for a lost process to come back. A process that takes its rank waits this much longer for its death. */
const SUCCESSION_MS = 2000
const INIT_TIMEOUT_MS = 300_000
const ROLE = 'member'

/**
 * Makes this process a worker of a group. Resolves when all `worldSize` processes have joined and can be called. Then `member.run(fn)` runs your program as this
 * worker, and `member.shutdown()` ends all processes together. PyTorch: `torch.distributed.rpc.init_rpc`.
 * @throws INVALID_ARGUMENT if an option, or a variable of the environment, is missing or invalid; TIMEOUT_INVALID; ALREADY_A_WORKER if this thread is a
 * worker; CREDENTIALS_REQUIRED if another machine is involved and `credentials` is missing; ADDRESS_IN_USE if the port is taken; CONNECT_FAILED if rank 0 cannot be
 * reached; AUTH_FAILED if a proof of identity is refused; RENDEZVOUS_TIMEOUT after `timeoutMs`, with the missing ranks; RENDEZVOUS_LOST if rank 0 ends meanwhile;
 * RENDEZVOUS_CONFLICT if two processes have the same rank or name, or different world sizes; WORKER_ID_OUT_OF_RANGE if the group has given out all ids
 * @example const member = await init({ initMethod: 'tcp://127.0.0.1:29500', rank: 0, worldSize: 2 })
 */
export async function init(options: InitOptions = {}): Promise<Member> {
  checkNames('init', options, OPTIONS)
  // First: kernels bind to the heap that they meet. Tensors leave from it and arrive in it without a copy.
  const heap = sharedHeap()
  const room = new HeapRoom()
  const place = placeOf(options, process.env)
  const timeoutMs = timeLimit('init', options.timeoutMs ?? INIT_TIMEOUT_MS)
  const name = nameOf(options, place)
  if (options.computeThreads !== undefined) checkComputeThreads('computeThreads', options.computeThreads)
  if (options.device !== undefined) await device(options.device).ready()
  const access = options.rights === undefined ? null : checkAccess('rights', { roles: {}, rights: options.rights })
  const limits = limitsOf(options.connection)
  const { remoteStacks = true } = options
  checkBoolean('init', 'remoteStacks', remoteStacks)
  const clock = new RealClock()
  const { onConnectionRefused = (error) => process.emitWarning(error) } = options
  const refusals = new Refusals(clock, (error) => callListener(clock, () => onConnectionRefused(error)))
  const onRefused = (from: string, error: PostgradError): void => refusals.note(from, error)
  const { cluster = 'postgrad', credentials = null } = options
  const self = { cluster, name, role: credentials?.kind === 'key' ? credentials.role : ROLE }
  let group: Group | null = null
  const onGone = (gone: Visitor): void => void group?.noteGone(gone)
  const stranger = randomInt(VISITORS_FROM, WORKER_ID_MAX)
  const { bind, storeFile } = options
  if (hasKernelPause()) throw alreadyWorker()
  let runtime: WorkerRuntime | null = null
  const removePause = installKernelPause(() => {
    runtime?.lookAround()
  })
  let hasReached = false
  const ends: (() => unknown)[] = [removePause]
  const end = async (): Promise<void> => {
    for (const one of ends) await one()
  }
  try {
    const meeting = await meet({
      place,
      self: { ...self, id: stranger },
      credentials,
      bind,
      storeFile,
      timeoutMs,
      clock,
      limits,
      onGone,
      onRefused,
      rights: access?.rights ?? {},
    })
    ends.unshift(() => meeting.close())
    const store = new PrefixStore(prefixOf(place), meeting.store)
    // Rank 0 serves the store now, so its predecessor is dead.
    group = new Group(new GroupLog(store), place, clock, meeting.isServed ? 0 : meeting.graceMs + SUCCESSION_MS, {
      refusals,
      graceMs: meeting.graceMs,
    })
    const { id, rank, before } = await claim(store, place)
    hasReached = true
    oneOfSeveral()
    const stayAwake = new StayAwake()
    const exchange = new Exchange({
      self: { ...self, id },
      credentials,
      clock,
      limits,
      isRestricted: (role) => access !== null && Object.hasOwn(access.rights, role),
      checksums: 'network',
      onRefused,
      stayAwake,
      ...(heap === null ? {} : { place: (bytes: number) => room.place(bytes) }),
    })
    const joined = group
    // What it dials the keeper as is its worker.
    const visitor = meeting.isWatched ? stranger : id
    const keeper = meeting.isWatched ? null : new Keeper({ id, exchange, clock, graceMs: meeting.graceMs, onGone })
    const transports: HeapTransport[] = []
    ends.unshift(
      () => keeper?.close(),
      () => joined.close(),
      () => exchange.close(),
      () => stayAwake.close(),
      () => {
        for (const transport of transports) transport.close()
      },
    )
    // Made only if a socket needs it: a process that is killed leaves it there.
    const path = (): string => {
      const folder = makeSocketFolder()
      const removeFolder = (): void => removeSocketFolder(folder)
      process.once('exit', removeFolder)
      ends.push(() => {
        process.off('exit', removeFolder)
        removeFolder()
      })
      return socketPath(folder, id)
    }
    const addresses = (await exchange.listen(places(options, place, path))).map(formatAddress)
    const { worldSize } = place
    await group.come({ what: 'joined', id, name, rank, worldSize, addresses, visitor, role: exchange.self.role }, before, timeoutMs)
    const boot = {
      seed: options.seed ?? 0,
      device: options.device ?? null,
      options: { rpcTimeoutMs: options.rpcTimeoutMs, mailbox: options.mailbox, remoteStacks },
      access,
    }
    // Who it is shows when a connection is made, before or after its arrival is read.
    const roles = new Map<number, string>()
    if (options.computeThreads !== undefined) setComputeThreads(options.computeThreads)
    const made = makeRuntime({ name, id }, before === 0 ? 0 : id, clock, boot, {
      roleOf: (peer) => roles.get(peer.id) ?? ROLE,
      deathRemedy,
    })
    exchange.onPeerIdentity((peer) => {
      // Kept: its link may have ended before it is opened here, and what it has sent is still read.
      roles.set(peer.id, peer.role)
      if (made.peers.get(peer.id) !== undefined) made.setPeerRole(peer.id, peer.role)
    })
    runtime = made
    const transport = (): HeapTransport => {
      // Where not all are trusted alike, large tensors are copied for each message: a peer that lies about what it has read would see what comes into their place.
      const made = new HeapTransport(heap, room, access === null)
      transports.push(made)
      return made
    }
    await group.begin(made, exchange, transport, (living) => {
      keeper?.see(living)
      for (const { name, visitor, role } of living) if (visitor !== stranger) meeting.expect({ name, id: visitor, role })
    })
    const { suspectMs = SOCKET_LIMITS.suspectMs } = limits
    return new Member({ runtime: made, rank, group, exchange, clock, suspectMs, store: meeting.store, isServing: meeting.isServed, end })
  } catch (error) {
    // Others may have read that it has come.
    if (isPostgradError(error, 'RENDEZVOUS_CONFLICT') || isPostgradError(error, 'RENDEZVOUS_TIMEOUT')) await group?.leave().catch(() => {})
    await end()
    const { graceMs = SOCKET_LIMITS.graceMs } = limits
    throw notMet(error, place, hasReached ? { lostMs: graceMs } : { notReachedMs: timeoutMs })
  }
}

/** A process dials the store with a random id from here on, above the ids of workers, so that its successor at a rank differs. */
const VISITORS_FROM = 2 ** 15

function nameOf({ name }: InitOptions, { rank }: Place): string {
  if (name === undefined && rank === null) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'init: name',
      expected: 'a name, where neither rank nor worldSize is given',
      got: 'none',
      remedy: "Pass { name: 'trainer3' }, another for each process.",
    })
  }
  return workerNames([name ?? `worker${rank}`])[0]!
}

function alreadyWorker(): PostgradError {
  return new PostgradError('ALREADY_A_WORKER', {
    op: 'init',
    expected: 'a thread that is not a worker',
    got: 'a worker of init or launch',
    remedy: 'Close the member before, or use another process.',
  })
}

/** What a store says that could not be reached, or has ended, is said as what it means here. */
function notMet(error: unknown, place: Place, waited: Waited): unknown {
  const { meeting } = place
  if (!isPostgradError(error, 'STORE_CLOSED')) return error
  if (isPostgradError(error.cause, 'CONNECT_FAILED')) return noRank0(error.cause, place, waited)
  if (isPostgradError(error.cause)) return error.cause
  // The operation and the remedy of the store are not those of init.
  return new PostgradError('RENDEZVOUS_LOST', {
    op: 'init',
    message: `the store at ${whereOf(meeting)}, where the processes meet, ended before all had joined: ${whatOf(error)}`,
    remedy: 'Look at the process of rank 0, which keeps it.',
    cause: error,
  })
}

/** How long this process has looked for rank 0, in ms: at first, or after it had been there. */
type Waited = { readonly notReachedMs: number } | { readonly lostMs: number }

/** The error of the connection names neither init nor rank 0, and its stack does not reach the program. */
function noRank0(cause: PostgradError, { meeting, rank }: Place, waited: Waited): PostgradError {
  const attempts = cause.values.attempts as readonly { readonly said: string }[] | undefined
  const said = attempts?.at(-1)?.said
  const who = rank === null ? 'this process' : `rank ${rank}`
  const at = `rank 0 at tcp://${whereOf(meeting)}`
  const message =
    'lostMs' in waited
      ? `${who} lost its connection to ${at}, and did not reach it again within ${waited.lostMs / 1000} s`
      : `${who} did not reach ${at} within ${waited.notReachedMs / 1000} s`
  const remedy =
    'lostMs' in waited
      ? 'Look at what the process of rank 0 has printed last.'
      : 'Start rank 0, or compare the address (initMethod, or MASTER_ADDR and MASTER_PORT) on both.'
  return new PostgradError('CONNECT_FAILED', {
    op: 'init',
    message: said === undefined ? message : `${message}: ${said}`,
    remedy: tooManyOpenFiles('init', cause)?.remedy ?? remedy,
    cause,
    values: { ...cause.values, rank },
  })
}
