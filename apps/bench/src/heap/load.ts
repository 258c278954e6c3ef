/**
 * The load of `--heap`: workers send each other tensors of mixed sizes without rest, keep some for a while, close some, drop the others for the
 * collector, and run backward passes. Sizes and lifetimes follow from the seed; `watch.ts` starts the load and samples the memory.
 */
import { Random } from '@postgrad/sim/internal'
import { call, distAutograd, expose, full, type Tensor, zeros } from 'postgrad'
import { currentRuntime } from 'postgrad/plugin'

/** 4 KiB to 4 MiB, as many in each octave: half the messages are small, most of the bytes are in the large ones. */
const [ELEMENTS_MIN, OCTAVES] = [1024, 10]
/** Programs of one worker at a time. */
const LANES = 3
/** Each worker keeps so many results and so many arguments; a new one takes the place of one at random. */
const KEPT = 24

const kept: Tensor[] = []
const keptArguments: Tensor[] = []
const arguments_ = new Random(1)
let isStopped = false
let done = 0
let running: Promise<unknown> = Promise.resolve()

export interface LoadSample {
  readonly done: number
  readonly heapUsedBytes: number
  readonly blocksOnTheWay: number
}

const sizeOf = (random: Random): number => Math.floor(ELEMENTS_MIN * 2 ** ((random.below(1024) * OCTAVES) / 1024))

/** In the place of a random one, whose end is left to the collector or comes at once. */
function keep(x: Tensor, among: Tensor[], random: Random): void {
  const at = random.below(KEPT)
  if (random.coin()) among[at]?.close()
  among[at] = x
}

/** Adds one; the argument may live on here. */
export function serve(x: Tensor): Tensor {
  const y = x.add(1)
  if (arguments_.below(4) === 0) keep(x, keptArguments, arguments_)
  return y
}
export const double = (x: Tensor): Tensor => x.mul(2)
export const make = (elements: number): Tensor => zeros([elements]).add(2)

function expectEqual(what: string, got: number, expected: number): void {
  if (got !== expected) throw new Error(`${what}: ${got} is not ${expected}`)
}

async function step(random: Random, peers: readonly string[]): Promise<void> {
  const to = peers[random.below(peers.length)]!
  const elements = sizeOf(random)
  const way = random.below(4)
  if (way === 0) {
    await distAutograd.context(async (ctx) => {
      const x = full([elements], 1, { requiresGrad: true })
      await ctx.backward([(await call(to, double, [x])).sum()])
      expectEqual('backward', ctx.gradients().get(x)!.dataSync()[elements - 1]!, 2)
    })
    return
  }
  const result = way === 1 ? await call(to, make, [elements]) : await call(to, serve, [full([elements], 1)])
  expectEqual('call', result.dataSync()[elements - 1]!, 2)
  const end = random.below(3)
  if (end === 0) keep(result, kept, random)
  else if (end === 1) result.close()
}

async function lane(seed: number): Promise<void> {
  const random = new Random(seed)
  const self = currentRuntime()
  const peers = self.workers().flatMap(({ name }) => (name === self.info.name ? [] : [name]))
  while (!isStopped) {
    await step(random, peers)
    done++
  }
}

export function startLoad(seed: number): void {
  running = Promise.all(Array.from({ length: LANES }, (_, i) => lane(seed * LANES + i)))
  // `stopLoad` throws it; until then a lane that failed shows in `done`.
  running.catch(() => {})
}

/** @throws what went wrong in a lane */
export async function stopLoad(): Promise<void> {
  isStopped = true
  await running
}

export const sampleLoad = (): LoadSample => ({
  done,
  heapUsedBytes: process.memoryUsage().heapUsed,
  blocksOnTheWay: currentRuntime().blocksOnTheWay,
})

expose({ serve, double, make, startLoad, stopLoad, sampleLoad })
