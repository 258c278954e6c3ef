/** Jobs in this thread, for simulations: on a clock that is passed in, with the same copies, scopes and cancellation as on threads. */
import type { Device } from '@postgrad/tensor'
import type { Clock } from '@postgrad/transport'
import { type Payload, PayloadCodec } from '@postgrad/wire/internal'
import { RunningJob } from './current-job.js'
import type { JobRequest } from './job-host.js'
import type { Places, RunningPlace } from './job-queue.js'
import { perform } from './perform.js'
import { ProgressReporter } from './progress.js'

export class InThreadPlaces implements Places {
  private readonly clock: Clock
  private readonly invoke: (name: string, args: readonly unknown[]) => unknown
  private readonly device: Device | null
  private readonly payloads = new PayloadCodec(null)

  constructor(clock: Clock, invoke: (name: string, args: readonly unknown[]) => unknown, device: Device | null = null) {
    this.clock = clock
    this.invoke = invoke
    this.device = device
  }

  run({ call, seed, onProgress }: JobRequest): RunningPlace {
    const progress = new ProgressReporter(this.clock, onProgress ?? (() => {}))
    const job = new RunningJob(
      () => {},
      (latest) => progress.report(latest),
    )
    const reply = new Promise<Payload>((resolve) => {
      this.clock.defer(async () => {
        const payload = await perform({ call, seed, job, device: this.device, payloads: this.payloads }, this.invoke)
        progress.flush()
        // As on threads, the reply takes a turn of its own.
        this.clock.defer(() => resolve(payload))
      })
    })
    return {
      reply,
      cancel: (why) => this.clock.defer(() => job.cancel(this.reasonOf(why))),
      // This thread is everybody's.
      kill: () => {},
      endedByRejection: () => false,
    }
  }

  async close(): Promise<void> {}

  private reasonOf(why: Payload): unknown {
    try {
      return this.payloads.decodeReply(why)
    } catch (error) {
      return error
    }
  }
}
