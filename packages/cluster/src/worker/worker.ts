/**
 * A worker on any host: it builds the WorkerRuntime, connects it to its peers, and answers the cluster's queries. It imports little, since several workers
 * start at once; the program and the kernels come later. `protocol.ts` has the messages.
 */
import { PostgradError } from '@postgrad/base'
import { importModule, keepCode, setTimeout } from '@postgrad/base/internal'
import { isJobMessage, type JobToWorker } from '@postgrad/jobs/internal'
import { runExposed, standstillOf, threadRegistry } from '@postgrad/rpc/internal'
import { type DeviceSpec, device, setComputeThreads } from '@postgrad/tensor'
import { installKernelPause } from '@postgrad/tensor/internal'
import { RealClock } from '@postgrad/transport/internal'
import { type Payload, transferables } from '@postgrad/wire/internal'
import { expose, transfer } from 'comlink'
import { InspectSender } from '../admin/inspect-events.js'
import { makeRuntime } from '../admin/make-runtime.js'
import { mainOf } from '../admin/program.js'
import type { Answer, Asked, AskWorker, BootData, CancelEvent, Query, WorkerEvent, WorkerPeer } from '../admin/protocol.js'
import { runPayloads } from '../admin/run-payloads.js'
import { beatWhileTurning } from '../host/heartbeat.js'
import type { WorkerSide } from '../host/worker-host.js'
import { jobsOfMainThread } from '../jobs/worker-jobs.js'
import { PeerLinks } from '../membership/peer-links.js'
import { outputTaken } from './output-taken.js'
import { progressOf } from './progress.js'

/** By then a worker has called most functions that it will call, and V8 has dropped the code of none. */
const KEEP_CODE_MS = 1000

type Answers = { readonly [Q in Query]: (...args: Asked<Q>) => Answer<Q> | Promise<Answer<Q>> }

/** For as long as its host has it. */
export function runWorker(side: WorkerSide): void {
  const { control, beats } = side
  const boot = side.boot as BootData
  setComputeThreads(boot.computeThreads)
  const runtime = makeRuntime(boot.info, boot.life, new RealClock(), boot)
  // This thread is this worker's alone: in the middle of a long kernel it still reads what arrives.
  installKernelPause(() => {
    beats.add()
    runtime.lookAround()
  })
  setTimeout(keepCode, KEEP_CODE_MS).unref()
  if (boot.stallMs > 0) beatWhileTurning(beats, boot.stallMs)
  const say = (event: WorkerEvent): void => control.postMessage(event)
  const progress = progressOf(runtime, (latest) => say({ event: 'progress', progress: latest }))
  const inspection = new InspectSender(runtime, side.taken, say)
  const jobs = jobsOfMainThread(runtime, boot, (message, moved) => control.postMessage(message, [...moved]))
  const runs = new Map<number, (reason: PostgradError) => void>()
  control.onMessage((message) => {
    if (isJobMessage(message)) jobs.receive(message as JobToWorker)
    const event = message as CancelEvent | { readonly event?: undefined } | null
    if (event?.event === 'cancel') runs.get(event.run)?.(cancelledFromOutside())
  })
  runtime.onClose(() => say({ event: 'closed' }))
  process.on('uncaughtExceptionMonitor', (_error, origin) => say({ event: 'fatal', origin }))
  // Peers are connected before the program is loaded, so that their names are known; launch lets nobody run before all are ready.
  const links = new PeerLinks<WorkerPeer>(runtime, ({ end }) => side.open(end))
  for (const worker of boot.gone) runtime.noteDeath(worker, 'before this worker began')
  void links.connect(boot.peers, [])

  const payloads = runPayloads(boot.info)
  let program: Readonly<Record<string, unknown>> = {}

  const cancellable = async <T>(run: number, fn: () => T): Promise<Awaited<T>> => {
    const { result, cancel } = runtime.runCancellable(fn)
    runs.set(run, cancel)
    try {
      return await result
    } finally {
      runs.delete(run)
    }
  }

  const answers: Answers = {
    start: async () => {
      if (boot.device !== null) await device(boot.device as DeviceSpec).ready()
      program = await runtime.run(() => importModule(boot.program, boot.typescript))
    },
    run: (run, call) => {
      const { name, args } = payloads.decodeCall(call)
      const exposed = threadRegistry.lookup(name, boot.info.name)
      return cancellable(run, () => runExposed(exposed, args))
    },
    runMain: async (run, { context, isLast }) => {
      const main = mainOf(program, boot.program)
      // What main returns stays here: it may be anything, and the command line has no use for it.
      await cancellable(run, () => main({ ...context, name: boot.info.name }))
      if (isLast) standstillOf(runtime).isMainOver = true
    },
    debugInfo: () => ({ ...runtime.debugInfo(), ...side.usage() }),
    references: () => runtime.references(),
    deadLetters: () => runtime.deadLetters(),
    metrics: () => runtime.metrics(),
    inspect: (isWanted) => inspection.listen(isWanted),
    connect: (peers, gone) => links.connect(peers, gone),
    reportQuiet: () => {
      runtime.onQuiet((counts) => say({ event: 'quiet', counts }))
    },
    // At the deadline the rest is cut off, as the caller wants.
    leave: (timeoutMs) => runtime.leave({ timeoutMs }).catch(() => {}),
    close: async () => {
      await runtime.close()
      // A short program closes its workers before they are a second old.
      keepCode()
    },
  }

  /** Whatever happens becomes a payload: comlink's own way for errors would lose their class, code and cause. */
  const ask: AskWorker = async (query, ...args) => {
    let payload: Payload
    try {
      payload = payloads.encodeResult(await (answers[query] as (...args: readonly unknown[]) => unknown)(...args))
    } catch (error) {
      payload = payloads.encodeError(error)
    }
    if (query === 'run' || query === 'runMain') await outputTaken()
    progress.flush()
    inspection.flush()
    return transfer(payload, transferables(payload))
  }
  expose(ask, control)
}

/** What the function finds as its signal's reason. */
function cancelledFromOutside(): PostgradError {
  return new PostgradError('CALL_CANCELLED', {
    op: 'currentSignal',
    message: 'the main thread does not wait for this run any more: it was cancelled, or its timeoutMs has passed',
    remedy: 'End what the function does, soon; its result goes to nobody.',
  })
}
