/**
 * Keeps saves in a directory apart. Within a cluster, the worker of the smallest id does so, which is the same for all; it takes a lock in the directory, which keeps
 * other runs out: a run that is started twice, or one that has not ended when the next one begins.
 *
 * Note [The lock of a directory]
 * `saving.lock` is a `FileLock`: on one machine each process sees whether the holder lives, and takes the lock of a dead one at once. A holder refreshes the lock each second; a holder
 * on another machine that has not for four seconds is taken for dead. Such a holder may have slept. So a save looks at the lock again before it writes the manifest, and no two
 * attempts use the same file names.
 */
import { join } from 'node:path'
import { noGrad } from '@postgrad/autograd'
import { isPostgradError, PostgradError } from '@postgrad/base'
import { type CallOptions, currentSignal, expose, getWorkerInfos, stream, type WorkerInfo, workerLocal } from '@postgrad/rpc'
import { currentRuntime } from '@postgrad/rpc/internal'
import { FileLock } from '@postgrad/transport/internal'
import { checkpointDiskOf } from './disk.js'
import { failed, failedUnlessTyped } from './errors.js'
import { soon } from './moment.js'

const LOCK = 'saving.lock'
const REFRESH_MS = 1_000
/** A holder that cannot be seen, and has not refreshed its lock for so long, is taken for dead. */
const SILENT_MS = 4_000
const LOOK_MS = 250
/** Where a file system has no symbolic links, runs are not kept apart. */
const NO_LINKS = ['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP']

/** Savers by directory, on the worker that is asked. */
const savers = workerLocal(() => new Map<string, string>())

/**
 * While `fn` runs nobody else saves in the directory. When the worker that sees to it ends or leaves, another one is asked by those who come then; and another run may take the lock over:
 * so `fn` calls what it is given before it makes anything last, which rejects with CHECKPOINT_FAILED then.
 * @throws CHECKPOINT_BUSY
 */
export async function alone<T>(
  directory: string,
  options: Pick<CallOptions, 'timeoutMs' | 'signal'>,
  fn: (stillAlone: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const { info: self } = currentRuntime()
  const asked = (): WorkerInfo => getWorkerInfos().reduce((a, b) => (a.id < b.id ? a : b), self)
  const holder = asked()
  const lost = (cause: unknown): PostgradError => failed('save', [holder.name], cause)
  const claiming = noGrad(() => stream(holder, locks.claim, [directory, self.name], { timeoutMs: 0, ...options }))
  const next = () =>
    claiming.next().catch((error: unknown) => {
      throw isPostgradError(error, 'CHECKPOINT_BUSY') || isPostgradError(error, 'CHECKPOINT_FAILED') ? error : lost(error)
    })
  const { value: mine } = await next()
  try {
    return await fn(async () => {
      if (!claiming.isOpen) await next()
      // A worker that leaves keeps its lock until this save has ended, but without a lock others ask the next worker.
      if (!claiming.isOpen || (mine === null && asked().id !== holder.id))
        throw lost(`'${holder.name}', which kept other saves out of the directory, has ended or left`)
      if (mine !== null && new FileLock(join(directory, LOCK)).text() !== mine)
        throw lost('another run has taken over the lock of the directory')
    })
  } finally {
    // Awaited, so that a worker that learns of this save's end may begin one; not for long, since the holder may be computing.
    await soon(claiming.return())
  }
}

/** Each save holds this open, which ends with it, also when its caller dies. Gives what the lock says of its holder. @throws CHECKPOINT_BUSY, CHECKPOINT_FAILED */
async function* claim(directory: string, saver: string): AsyncGenerator<string | null> {
  const all = savers()
  const other = all.get(directory)
  if (other !== undefined) throw busy(directory, `worker '${other}'`, { worker: other })
  all.set(directory, saver)
  let lock: FileLock | null = null
  try {
    lock = await lockOf(directory).catch((error: unknown) => {
      throw failedUnlessTyped('save', [currentRuntime().info.name], error)
    })
    yield lock?.text() ?? null
    await whileWanted(lock)
  } finally {
    all.delete(directory)
    lock?.release()
  }
}

/** Null where the file system has no locks. @throws CHECKPOINT_BUSY */
async function lockOf(directory: string): Promise<FileLock | null> {
  await checkpointDiskOf(currentRuntime()).makeDirectory(directory)
  const lock = new FileLock(join(directory, LOCK))
  try {
    if (lock.tryAcquire()) return lock
    if (lock.isBeyondSight()) {
      const sign = lock.sign()
      for (let waited = 0; waited < SILENT_MS && lock.sign() === sign; waited += LOOK_MS) await sleep(LOOK_MS)
      if (lock.tryAcquire(sign)) return lock
    }
  } catch (error) {
    if (NO_LINKS.includes(String((error as { code?: unknown }).code))) return null
    throw error
  }
  throw busy(directory, `another run (${lock.holder()})`, { holder: lock.holder(), lock: lock.path })
}

async function whileWanted(lock: FileLock | null): Promise<void> {
  const [signal, { clock }] = [currentSignal(), currentRuntime()]
  if (signal.aborted) return
  const refresh = () => {
    try {
      lock?.refresh()
    } catch {
      // Whether it is still there is looked at before the manifest is written.
    }
    timer = clock.setTimer(REFRESH_MS, refresh)
  }
  let timer = clock.setTimer(REFRESH_MS, refresh)
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  timer.cancel()
}

function sleep(ms: number): Promise<void> {
  const { clock } = currentRuntime()
  return new Promise((resolve) => clock.setTimer(ms, resolve))
}

function busy(directory: string, who: string, values: Record<string, unknown>): PostgradError {
  return new PostgradError('CHECKPOINT_BUSY', {
    op: 'save',
    message: `${who} is saving in '${directory}' at the moment`,
    remedy:
      values.worker === undefined
        ? 'Give each run a directory of its own, or wait until the other run has ended.'
        : 'Call save on one worker only, such as rank 0: every worker then writes its part. On that worker, make one Checkpoints object for the directory.',
    values: { ...values, directory },
  })
}

const locks = { claim } as const
expose({ 'postgrad.checkpoint.claim': claim })
