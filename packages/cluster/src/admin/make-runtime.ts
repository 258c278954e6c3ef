/** The runtime of a worker of a cluster, on its thread or on the main one. */
import { PostgradError } from '@postgrad/base'
import { DIED } from '@postgrad/base/internal'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { installProcessGroups } from '@postgrad/process-group/internal'
import { type RoleRights, rolePolicy } from '@postgrad/rpc'
import { standstillOf, threadRegistry, type WorkerInfo, type WorkerOptions, WorkerRuntime, workerGenerator } from '@postgrad/rpc/internal'
import { type DeviceSpec, device } from '@postgrad/tensor'
import type { Clock } from '@postgrad/transport'

/** What `launch` says of all of them; it travels to threads. */
export interface RuntimeBoot {
  /** The cluster's; a worker's generator is made from it and its name. */
  readonly seed: number
  /** What `device()` takes; null is the thread's default. */
  readonly device: string | null
  /** As the runtime takes them. */
  readonly options: Pick<WorkerOptions, 'rpcTimeoutMs' | 'mailbox' | 'referenceStacks' | 'remoteStacks'>
  /** Null: everybody may do everything. */
  readonly access: Access | null
}

/** What workers may have others do. */
export interface Access {
  /** By the names of workers; the default is 'member'. */
  readonly roles: Readonly<Record<string, string>>
  /** By roles: see `rolePolicy`. */
  readonly rights: Readonly<Record<string, RoleRights>>
}

const MEMBER = 'member'

interface RuntimeHooks {
  readonly isGuest?: boolean
  /** The role of a worker that is linked now; default: what the boot says of its name. */
  readonly roleOf?: (worker: WorkerInfo) => string
  /** The remedy of WORKER_DIED for a peer whose link ended with this detail; default: that of `launch`. */
  readonly deathRemedy?: (detail: string) => string
}

const launchedDied = (): string => `${DIED} cluster.onWorkerDeath says what ended its thread.`

/** @param life how many workers had this name before */
export function makeRuntime(info: WorkerInfo, life: number, clock: Clock, boot: RuntimeBoot, hooks: RuntimeHooks = {}): WorkerRuntime {
  const { seed, device: spec, options, access } = boot
  const { isGuest = false, roleOf = ({ name }) => access?.roles[name] ?? MEMBER, deathRemedy = launchedDied } = hooks
  const runtime = new WorkerRuntime({
    ...options,
    ...info,
    isGuest,
    deathRemedy,
    clock,
    registry: threadRegistry,
    generator: workerGenerator(seed, info.name, life),
    // It is a dead letter, and workers that wait for it got an error: one message must not end this worker.
    onHandlerError: (error) => process.emitWarning(error instanceof Error ? error : String(error)),
    ...(spec === null ? {} : { device: device(spec as DeviceSpec) }),
    ...(access === null ? {} : { authority: rolePolicy(access.rights) }),
  })
  if (access !== null) runtime.onPeerConnect((peer) => runtime.setPeerRole(peer.id, roleOf(peer)))
  installDistAutograd(runtime)
  installProcessGroups(runtime)
  standstillOf(runtime).watch((line) => process.stderr.write(`${line}\n`))
  return runtime
}

/**
 * A role that is misspelt would have every right, so each has to be known.
 * @throws INVALID_ARGUMENT
 */
export function checkAccess(op: string, { roles, rights }: Access): Access {
  rolePolicy(rights)
  for (const [name, role] of Object.entries(roles)) {
    if (role === MEMBER || Object.hasOwn(rights, role)) continue
    throw new PostgradError('INVALID_ARGUMENT', {
      op,
      expected: `one of the roles ${[MEMBER, ...Object.keys(rights)].map((known) => `'${known}'`).join(', ')} for '${name}'`,
      got: typeof role === 'string' ? `'${role}'` : typeof role,
      remedy: `Say in { rights } what the role may do, as { rights: { ${typeof role === 'string' ? role : 'observer'}: { call: ['selectAction'] } } }.`,
      values: { worker: name },
    })
  }
  return { roles, rights }
}
