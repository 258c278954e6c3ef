/** Messages that wait for a device, over a real port and with blocks of a real heap: the blocks go back in every case, and both ends count the same bytes. */
import { MessageChannel } from 'node:worker_threads'
import { expect, test } from '@jest/globals'
import { type Tensor, tensor, zeros } from '@postgrad/tensor'
import { HeapTransport, threadHeap } from '@postgrad/tensor/internal'
import { residentDevice } from '@postgrad/tensor/suite'
import { messagePortLink, RealClock } from '@postgrad/transport/internal'
import { FunctionRegistry } from '../common/function-registry.js'
import { WorkerRuntime } from '../worker/worker-runtime.js'

const there = residentDevice()
const heap = threadHeap()
const clock = new RealClock()
const keep = (...args: unknown[]): number => args.length
const sums = async (a: Tensor, b: Tensor) => [(await a.sum().data())[0], (await b.sum().data())[0]]
const large = (): Tensor => zeros([10_000]).add(1)
const x = () => tensor([1, 2], { device: there })
const broken = () => x().indexSelect(0, tensor(new Int32Array(5000).fill(7), { dtype: 'int32', device: there }))
const codeOf = (work: PromiseLike<unknown>) =>
  Promise.resolve(work).then(
    () => 'well',
    (error: { code: string }) => error.code,
  )

function pair() {
  const { port1, port2 } = new MessageChannel()
  const registry = new FunctionRegistry()
  registry.expose({ keep, sums })
  const end = (id: number, port: typeof port1) => ({
    runtime: new WorkerRuntime({ name: `w${id}`, id, clock, registry }),
    link: messagePortLink(port),
    transport: new HeapTransport(heap),
  })
  const [a, b] = [end(0, port1), end(1, port2)]
  a.runtime.connect(b.runtime.info, a.link, a.transport)
  b.runtime.connect(a.runtime.info, b.link, b.transport)
  a.runtime.setDeviceMap(1, { [there.spec]: there.spec })
  return [a.runtime, b.runtime] as const
}

async function allBack(before: number): Promise<void> {
  for (let i = 0; i < 200 && heap.inFlight > before; i++) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(heap.inFlight).toBe(before)
}

test('LATE-2, LATE-3: blocks of messages that wait, that fail, and that a getter sends meanwhile go back', async () => {
  const before = heap.inFlight
  const [a, b] = pair()
  const release = there.home.holdReads()
  let reads = 0
  const inner: PromiseLike<unknown>[] = []
  const argument = {
    // The codec looks, and then writes.
    get value() {
      if (++reads === 2) inner.push(a.call(1, keep, [large(), x()]))
      return 7
    },
  }
  const calls = [a.call(1, sums, [large(), x()]), a.call(1, sums, [large(), large()]), a.call(1, keep, [large(), argument, large()])]
  expect(a.debugInfo().lateMessages).toBeGreaterThanOrEqual(3)
  release()
  expect(await Promise.all(calls)).toEqual([[10_000, 3], [10_000, 10_000], 3])
  expect(await Promise.all(inner)).toEqual([2])
  await allBack(before)
  expect(await codeOf(a.call(1, sums, [large(), broken()]))).toBe('INDEX_OUT_OF_RANGE')
  await allBack(before)
  expect(await a.call(1, keep, [1])).toBe(1)
  expect(a.peers.resolve(1).ledger.outgoing.bytes).toBeLessThan(20_000)
  await a.close()
  await b.close()
})

test.each(['peer', 'own worker'])('LATE-4: blocks of a message that waits go back when its %s closes', async (whose) => {
  const before = heap.inFlight
  const [a, b] = pair()
  const release = there.home.holdReads()
  const waits = codeOf(a.call(1, sums, [large(), x()]))
  expect(heap.inFlight).toBe(before + 1)
  await (whose === 'peer' ? b : a).close()
  expect(await waits).toBe(whose === 'peer' ? 'WORKER_DIED' : 'RPC_SHUT_DOWN')
  await allBack(before)
  release()
  await (whose === 'peer' ? a : b).close()
})
