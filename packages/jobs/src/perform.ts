/** Runs one job, in a thread of a pool or in the thread of a simulation. Every outcome becomes a payload: a pool's own way for errors loses class, code and cause. */
import { inScope, Scope } from '@postgrad/base/internal'
import { type Device, Generator } from '@postgrad/tensor'
import type { Payload, PayloadCodec } from '@postgrad/wire/internal'
import type { RunningJob } from './current-job.js'

export interface Performance {
  readonly call: Payload
  readonly seed: number
  readonly job: RunningJob
  readonly device: Device | null
  readonly payloads: PayloadCodec
}

/** Never rejects. The job belongs to no worker and no distributed context; its random numbers are its own. */
export async function perform(
  { call, seed, job, device, payloads }: Performance,
  invoke: (name: string, args: readonly unknown[]) => unknown,
): Promise<Payload> {
  try {
    const { name, args } = payloads.decodeCall(call)
    const scope = new Scope({ job, device, generator: new Generator(seed) }, {})
    return payloads.encodeResult(await inScope(scope, () => invoke(name, args)))
  } catch (error) {
    return payloads.encodeError(error)
  }
}
