/** The code of a pool's thread: it runs one job after the other by the pool's program. `protocol.ts` has the messages. */
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { importUrl } from '@postgrad/base/internal'
import { type Device, type DeviceSpec, device } from '@postgrad/tensor'
import { RealClock } from '@postgrad/transport/internal'
import { type Payload, PayloadCodec, transferables } from '@postgrad/wire/internal'
import { RunningJob } from './current-job.js'
import { perform } from './perform.js'
import { ProgressReporter } from './progress.js'
import { type JobProgram, type JobTask, NO_JOB, type ThreadBoot } from './protocol.js'

const boot = workerData as ThreadBoot
const payloads = new PayloadCodec(null)
const clock = new RealClock()
let chosen: Device | null = null
let program: Promise<JobProgram> | null = null
let slot = NO_JOB
let isWatched = false

export default async function run(task: JobTask): Promise<unknown> {
  // Not when it is loaded: in the bundled library every thread loads this module, and only that of a pool has such a `boot`.
  if (!isWatched) process.on('uncaughtExceptionMonitor', onFatal)
  isWatched = true
  slot = task.slot
  const payload = await reply(task)
  // piscina has started this thread, so it is loaded. Every thread loads this module, and few make a pool.
  const piscina = await import('piscina')
  slot = NO_JOB
  return piscina.move({ [piscina.transferableSymbol]: transferables(payload), [piscina.valueSymbol]: payload })
}

function onFatal(_error: unknown, origin: string): void {
  if (origin === 'unhandledRejection') Atomics.store(boot.rejections, slot, 1)
}

async function reply({ call, seed, port }: JobTask): Promise<Payload> {
  const progress = new ProgressReporter(clock, (latest) => port?.postMessage(latest))
  const job = new RunningJob(
    () => port !== null && hear(port, job),
    (latest) => {
      if (port !== null) progress.report(latest)
    },
  )
  port?.on('message', (why: Payload) => job.cancel(reasonOf(why)))
  // Sets the device before the first job. `perform` says why a program could not be loaded.
  program ??= load()
  const loaded = program
  await loaded.catch(() => {})
  const payload = await perform({ call, seed, job, device: chosen, payloads }, async (name, args) =>
    (await loaded).runJob(name, args, boot.data),
  )
  progress.flush()
  port?.close()
  return payload
}

async function load(): Promise<JobProgram> {
  if (boot.device !== null) {
    chosen = device(boot.device as DeviceSpec)
    await chosen.ready()
  }
  return importUrl<JobProgram>(boot.program)
}

function hear(port: MessagePort, job: RunningJob): void {
  const got = receiveMessageOnPort(port)
  if (got !== undefined) job.cancel(reasonOf(got.message as Payload))
}

function reasonOf(why: Payload): unknown {
  try {
    return payloads.decodeReply(why)
  } catch (error) {
    return error
  }
}
