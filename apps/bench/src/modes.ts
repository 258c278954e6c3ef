/**
 * The cost of SMART compared with FAST: the same programs in contexts of either mode, forward and backward, with the bytes that worker0 sends. `plans/modes.ts`
 * has the rows. Time is CPU time of all threads of the process: waiting, and other work on the machine, do not count.
 */
import { add, call, distAutograd, expose, rand, type Tensor } from 'postgrad'
import { currentRuntime } from 'postgrad/plugin'
import type { BackwardMode } from 'postgrad/types'

export const addTwo = (t: Tensor) => t.add(2)

/** Calls of which a loss is made. */
export type Shape = 'note' | 'chain' | 'fan'

const small = () => rand([3, 3], { requiresGrad: true })

const GRAPHS: Readonly<Record<Shape, (calls: number, workers: readonly string[]) => Promise<Tensor>>> = {
  /** PyTorch's design note, whatever the number. */
  note: async () => (await call('worker1', add, [small(), small()])).mul(small()),
  /** To worker1 and back, one call after the other. */
  chain: async (calls) => {
    let x: Tensor = small()
    for (let i = 0; i < calls; i++) x = await call('worker1', addTwo, [x])
    return x
  },
  /** All at once, of all workers. */
  fan: async (calls, workers) => {
    const x = small()
    const parts = await Promise.all(Array.from({ length: calls }, (_, i) => call(workers[i % workers.length]!, addTwo, [x])))
    return parts.reduce(add)
  },
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

export interface ModeCost {
  /** CPU time of all of it, in s. */
  readonly seconds: number
  readonly forwardSeconds: number
  readonly backwardSeconds: number
  /** Sent by worker0, headers and segments. */
  readonly bytes: number
  readonly messages: number
}

/** n contexts of that mode, each with a pass over `calls` calls. */
export async function modePasses(
  n: number,
  shape: Shape,
  calls: number,
  workers: readonly string[],
  mode: BackwardMode,
): Promise<ModeCost> {
  const { codec } = currentRuntime()
  const { encode } = codec
  let bytes = 0
  let messages = 0
  codec.encode = (...args) => {
    const frame = encode.apply(codec, args)
    bytes += frame.segments.reduce((sum, segment) => sum + segment.length, frame.header.length)
    messages++
    return frame
  }
  let [forwardSeconds, backwardSeconds] = [0, 0]
  const started = cpuMs()
  try {
    for (let i = 0; i < n; i++) {
      const begun = cpuMs()
      await distAutograd.context(
        async (ctx) => {
          const loss = (await GRAPHS[shape](calls, workers)).sum()
          const turned = cpuMs()
          await ctx.backward([loss])
          forwardSeconds += (turned - begun) / 1000
          backwardSeconds += (cpuMs() - turned) / 1000
        },
        { mode },
      )
    }
  } finally {
    codec.encode = encode
  }
  return { seconds: (cpuMs() - started) / 1000, forwardSeconds, backwardSeconds, bytes, messages }
}

expose({ benchAddTwo: addTwo, modePasses })
