/**
 * What a worker's thread runs first: it builds the WorkerRuntime, connects it to its peers, and waits for the cluster's word through comlink.
 * It imports little (several workers start at once); the program and the kernels come later. `protocol.ts` has the conversation.
 */
import { workerData } from 'node:worker_threads'
import { importModule } from '@postgrad/base/internal'
import { installDistAutograd } from '@postgrad/dist-autograd/internal'
import { isJobMessage, type JobToWorker } from '@postgrad/jobs/internal'
import { threadRegistry, WorkerRuntime, workerGenerator } from '@postgrad/rpc/internal'
import { type DeviceSpec, device } from '@postgrad/tensor'
import { attachThreadHeap, installKernelPause } from '@postgrad/tensor/internal'
import { RealClock } from '@postgrad/transport/internal'
import { type Payload, transferables } from '@postgrad/wire/internal'
import { expose, transfer } from 'comlink'
import { InspectSender } from '../admin/inspect-road.js'
import { mainOf } from '../admin/program.js'
import type { BootData, FatalEvent, ProgressEvent, WorkerFacade } from '../admin/protocol.js'
import { runPayloads } from '../admin/run-payloads.js'
import { beat, beatWhileTurning } from '../host/heartbeat.js'
import { NodeEndpoint } from '../host/node-endpoint.js'
import { portLinks } from '../host/port-links.js'
import { threadUsage } from '../host/usage.js'
import { jobsOfMainThread } from '../jobs/worker-jobs.js'
import { progressOf } from './progress.js'

const boot = workerData as BootData
// First: kernels bind to the heap that they meet.
const heap = boot.heap === null ? null : attachThreadHeap(boot.heap)
const payloads = runPayloads(boot.info)
const runtime = new WorkerRuntime({
  name: boot.info.name,
  id: boot.info.id,
  clock: new RealClock(),
  registry: threadRegistry,
  generator: workerGenerator(boot.seed, boot.info.name, boot.life),
  // It is a dead letter, and who waits has been told: what one message does must not end all that runs here.
  onHandlerError: (error) => process.emitWarning(error instanceof Error ? error : String(error)),
  referenceStacks: boot.referenceStacks,
  ...(boot.device === null ? {} : { device: device(boot.device as DeviceSpec) }),
  ...(boot.rpcTimeoutMs === null ? {} : { rpcTimeoutMs: boot.rpcTimeoutMs }),
  ...(boot.mailbox === null ? {} : { mailbox: boot.mailbox }),
})
installDistAutograd(runtime)
// This thread is this worker's alone: in the middle of a long kernel it still reads what arrives.
installKernelPause(() => {
  beat(boot.heartbeat)
  runtime.lookAround()
})
if (boot.stallMs > 0) beatWhileTurning(boot.heartbeat, boot.stallMs)
const progress = progressOf(runtime, (latest) => boot.control.postMessage({ event: 'progress', progress: latest } satisfies ProgressEvent))
const jobs = jobsOfMainThread(runtime, boot, (message, transfer) => boot.control.postMessage(message, transfer))
boot.control.on('message', (data: unknown) => isJobMessage(data) && jobs.receive(data as JobToWorker))
process.on('uncaughtExceptionMonitor', (_error, origin) => boot.control.postMessage({ event: 'fatal', origin } satisfies FatalEvent))
// Peers are connected before the program is loaded, so that their names are known; launch lets nobody run before all are ready.
const links = portLinks(runtime, heap)
for (const worker of boot.gone) runtime.noteDeath(worker, 'before this worker began')
void links.connect(boot.peers, [])

const inspection = new InspectSender(runtime, (post) => boot.control.postMessage(post))

let program: Readonly<Record<string, unknown>> = {}

/** Whatever happens becomes a payload: comlink's own way for errors would lose their class, code and cause. */
async function reply(work: () => unknown): Promise<Payload> {
  let payload: Payload
  try {
    payload = payloads.encodeResult(await work())
  } catch (error) {
    payload = payloads.encodeError(error)
  }
  progress.flush()
  inspection.flush()
  return transfer(payload, transferables(payload))
}

const facade: WorkerFacade = {
  start: () =>
    reply(async () => {
      if (boot.device !== null) await device(boot.device as DeviceSpec).ready()
      program = await runtime.run(() => importModule(boot.program, boot.typescript))
    }),
  run: (call) =>
    reply(() => {
      const { name, args } = payloads.decodeCall(call)
      const exposed = threadRegistry.lookup(name, boot.info.name)
      return runtime.run(() => (exposed.target as (...args: readonly unknown[]) => unknown)(...args))
    }),
  runMain: (context) =>
    reply(async () => {
      const main = mainOf(program, boot.program)
      // What main returns stays here: it may be anything, and the command line has no use for it.
      await runtime.run(() => main({ ...context, name: boot.info.name }))
    }),
  debugInfo: () => reply(() => ({ ...runtime.debugInfo(), ...threadUsage() })),
  references: () => reply(() => runtime.references()),
  deadLetters: () => reply(() => runtime.deadLetters()),
  metrics: () => reply(() => runtime.metrics()),
  inspect: (taken) => reply(() => inspection.listen(taken)),
  connect: (peers, gone) => reply(() => links.connect(peers, gone)),
  // What is left at the deadline is cut off, which whoever set it knows.
  countsIfQuiet: () => reply(() => runtime.countsIfQuiet()),
  leave: (timeoutMs) => reply(() => runtime.leave({ timeoutMs }).catch(() => {})),
  close: () => reply(() => runtime.close()),
}
expose(facade, new NodeEndpoint(boot.control))
