/** The runtime of a worker of a cluster, on its thread or on the main one. */
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { threadRegistry, type WorkerInfo, type WorkerOptions, WorkerRuntime, workerGenerator } from '@postgrad/rpc/internal'
import { type DeviceSpec, device } from '@postgrad/tensor'
import type { Clock } from '@postgrad/transport'

/** What `launch` says of all of them; it travels to threads. */
export interface RuntimeBoot {
  /** The cluster's; a worker's generator is made from it and its name. */
  readonly seed: number
  /** What `device()` takes; null is the thread's default. */
  readonly device: string | null
  /** As the runtime takes them. */
  readonly options: Pick<WorkerOptions, 'rpcTimeoutMs' | 'mailbox' | 'referenceStacks'>
}

/** @param life how many workers had this name before */
export function makeRuntime(info: WorkerInfo, life: number, clock: Clock, boot: RuntimeBoot, { isGuest = false } = {}): WorkerRuntime {
  const { seed, device: spec, options } = boot
  const runtime = new WorkerRuntime({
    ...options,
    ...info,
    isGuest,
    clock,
    registry: threadRegistry,
    generator: workerGenerator(seed, info.name, life),
    // It is a dead letter, and who waits has been told: what one message does must not end all that runs here.
    onHandlerError: (error) => process.emitWarning(error instanceof Error ? error : String(error)),
    ...(spec === null ? {} : { device: device(spec as DeviceSpec) }),
  })
  installDistAutograd(runtime)
  return runtime
}
