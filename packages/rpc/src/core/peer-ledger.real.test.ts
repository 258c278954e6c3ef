/**
 * Blocks between two workers of one thread and one heap, over a real port: the counts, and what happens in the pauses of kernels.
 * Names begin with the rule of tensor's HEAP.md or of SPEC.md that they hold.
 */
import { MessageChannel } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { PostgradError } from '@postgrad/base'
import { memoryScope, type Tensor, zeros } from '@postgrad/tensor'
import { HeapTransport, installKernelPause, threadHeap } from '@postgrad/tensor/internal'
import type { Frame, Link } from '@postgrad/transport'
import { messagePortLink, RealClock } from '@postgrad/transport/internal'
import { MessageType, requestHead } from '@postgrad/wire/internal'
import { rref } from '../api/api.js'
import { FunctionRegistry } from '../common/function-registry.js'
import { WorkerRuntime } from '../worker/worker-runtime.js'

const heap = threadHeap()
const clock = new RealClock()
/** Numbers large enough for a copy with pauses in it. */
const WIDE = 1024
let kept: unknown[] = []
const make = (): Tensor => {
  const made = large()
  kept.push(made)
  return made
}
const keep = (...args: unknown[]): number => kept.push(args)

interface End {
  readonly runtime: WorkerRuntime
  readonly link: Link
  readonly transport: HeapTransport
}

let a: End
let b: End
let removePause: () => void

beforeEach(() => {
  kept = []
  removePause = () => {}
  const { port1, port2 } = new MessageChannel()
  const registry = new FunctionRegistry()
  registry.expose({ keep, make })
  const end = (id: number, port: typeof port1): End => ({
    runtime: new WorkerRuntime({ name: `w${id}`, id, clock, registry }),
    link: messagePortLink(port),
    transport: new HeapTransport(heap),
  })
  a = end(0, port1)
  b = end(1, port2)
  a.runtime.connect(b.runtime.info, a.link, a.transport)
  b.runtime.connect(a.runtime.info, b.link, b.transport)
})

afterEach(async () => {
  removePause()
  await a.runtime.close()
  await b.runtime.close()
})

/** Not row by row: it is copied when it is sent. */
const turned = (): Tensor => zeros([WIDE, WIDE]).T
const large = (): Tensor => zeros([10_000]).add(1)

/** In the first pause of the kernels of `a`, one message of `b` with a block is read. */
function readInPause(): Promise<unknown> {
  const arriving = b.runtime.call(0, keep, [large()])
  b.runtime.lookAround()
  removePause = installKernelPause(() => {
    a.runtime.lookAround()
    a.runtime.lookAround()
  })
  return arriving
}

/** `onFrame` gets each frame that `a` sends from now on, and its number. */
function watchFrames(onFrame: (frame: Frame, n: number) => void): void {
  let sent = 0
  const send = a.link.send.bind(a.link)
  a.link.send = (frame) => {
    send(frame)
    onFrame(frame, ++sent)
  }
}

test('HEAP-4 a block stays held until its own message is read, also when another was read and answered while that was written', async () => {
  const args = [large(), turned()]
  const arriving = readInPause()
  let atCall = 0
  watchFrames((frame, n) => {
    if (requestHead(frame)?.type === MessageType.CALL) atCall = n
  })
  const departing = a.runtime.call(1, keep, args)
  const both = Promise.allSettled([arriving, departing])
  a.transport.taken(atCall - 1)
  expect(a.transport.inFlight).toBe(2)
  expect((await both).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect([a.transport.inFlight, b.transport.inFlight]).toEqual([0, 0])
})

test('RPC-16 a reference is known to have left with its message, also when another was answered while that was written', async () => {
  const args = [a.runtime.run(() => rref('value')), turned()]
  const arriving = readInPause()
  const departing = a.runtime.call(1, keep, args)
  const both = Promise.allSettled([arriving, departing])
  expect(a.runtime.debugInfo().forks).toBe(1)
  expect((await both).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
})

test('CRE-14 a message that the link refuses has not left: neither end counts it, and nothing of it is held', async () => {
  const { inFlight } = heap
  const { send } = a.link
  a.link.send = () => {
    throw new PostgradError('FRAME_TOO_LARGE', { op: 'link.send', message: 'too large', remedy: 'Send it in parts.' })
  }
  const value = a.runtime.run(() => rref('value'))
  for (let i = 0; i < 3; i++) {
    await expect(a.runtime.call(1, keep, [large(), value])).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE' })
  }
  a.link.send = send
  expect([heap.inFlight - inFlight, a.runtime.debugInfo().forks]).toEqual([0, 0])
  await a.runtime.call(1, keep, [large()])
  await new Promise((resolve) => setTimeout(resolve, 20))
  const ledgers = [a.runtime.peers.get(1)!.ledger, b.runtime.peers.get(0)!.ledger] as const
  expect([ledgers[0].sent - ledgers[1].received, ledgers[0].outgoing.calls, a.transport.inFlight]).toEqual([0, 0, 0])
})

/** Plain values whose getter sends another call to the same peer: it leaves first, while the call that it is an argument of is written. */
function nesting(nested: () => Promise<unknown>): { readonly argument: object; readonly calls: Promise<unknown>[] } {
  const calls: Promise<unknown>[] = []
  let reads = 0
  const argument = {
    get value() {
      // The first read looks whether the value can be sent, the second writes it.
      if (++reads === 2) calls.push(nested())
      return 7
    },
  }
  return { argument, calls }
}

test('HEAP-4, CRE-12: a message that is sent while another is written takes neither its blocks nor their bytes', async () => {
  const { outgoing } = a.runtime.peers.resolve(1).ledger
  const { incoming } = b.runtime.peers.resolve(0).ledger
  const { argument, calls } = nesting(() => a.runtime.call(1, keep, [large()]))
  let nestedAt = 0
  watchFrames((_, n) => {
    nestedAt ||= n
  })
  const departing = a.runtime.call(1, keep, [large(), large(), argument])
  expect([calls.length, nestedAt, a.transport.inFlight]).toEqual([1, 1, 3])
  const { bytes } = outgoing
  expect(bytes).toBeGreaterThan(3 * 40_000)
  a.transport.taken(1)
  expect(a.transport.inFlight).toBe(2)
  await Promise.all([departing, ...calls])
  await new Promise((resolve) => setTimeout(resolve, 20))
  // Both ends count each call with the bytes of its own blocks.
  expect([a.transport.inFlight, incoming.begunBytes, a.runtime.deadLetters().total]).toEqual([0, bytes, 0])
})

test('HEAP-4 a message that cannot be sent while another is written takes nothing of that one', async () => {
  const { send } = a.link
  const refuse = (): never => {
    a.link.send = send
    throw new PostgradError('FRAME_TOO_LARGE', { op: 'link.send', message: 'too large', remedy: 'Send it in parts.' })
  }
  a.link.send = refuse
  const { argument, calls } = nesting(() => a.runtime.call(1, keep, [large()]))
  const departing = a.runtime.call(1, keep, [large(), argument])
  expect(a.transport.inFlight).toBe(1)
  expect((await Promise.allSettled([departing, ...calls])).map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
})

test('what a worker sends to itself within a memoryScope is not closed with the scope', async () => {
  let call: Promise<unknown> | null = null
  memoryScope(() => {
    call = a.runtime.call(0, keep, [large()])
  })
  await call
  const [[received]] = kept as [[Tensor]]
  expect(received.isClosed).toBe(false)
})

/** `a` closes as soon as its reply, with a block, has left, and keeps nothing of it. */
async function closeAfterReply(drainMs: number): Promise<PromiseSettledResult<unknown>> {
  const { inFlight } = heap
  const send = a.link.send.bind(a.link)
  const closed = new Promise<void>((resolve) => {
    const leave = (): void => {
      resolve(a.runtime.close({ drainMs }))
      ;(kept[0] as Tensor).close()
    }
    a.link.send = (frame) => {
      send(frame)
      if (requestHead(frame)?.type === MessageType.RESULT) queueMicrotask(leave)
    }
  })
  const [reply] = await Promise.allSettled([b.runtime.call(0, make, [])])
  await closed
  expect(heap.inFlight).toBe(inFlight)
  return reply!
}

test('HEAP-4 who closes with patience waits until its blocks are read', async () => {
  const reply = await closeAfterReply(10_000)
  expect(reply.status === 'fulfilled' ? (reply.value as Tensor).numel : reply.reason).toBe(10_000)
})

test('HEAP-4 who closes at once takes what is not read with it, and holds nothing on; its reader learns that it has ended', async () => {
  const reply = await closeAfterReply(0)
  expect(reply.status === 'rejected' && reply.reason.code).toBe('WORKER_DIED')
})

test('CRE-12: a call counts the elements of the blocks that it names, alike at both ends, and gives them back when it begins', async () => {
  const { outgoing } = a.runtime.peers.resolve(1).ledger
  const { incoming } = b.runtime.peers.resolve(0).ledger
  const tensors = [large(), large()]
  const bytes = tensors.length * 10_000 * 4
  let waiting = 0
  const { progress } = b.runtime.messages
  const run = progress.begun
  progress.begun = function (this: typeof progress, item) {
    waiting = Math.max(waiting, incoming.bytes)
    run.call(this, item)
  }
  const called = a.runtime.run(() => a.runtime.call(1, keep, tensors))
  const sent = outgoing.bytes
  expect(sent).toBeGreaterThan(bytes)
  // All other bytes are a small header.
  expect(sent).toBeLessThan(bytes + 1000)
  await called
  expect(waiting).toBe(sent)
  expect({ calls: incoming.calls, bytes: incoming.bytes, begunBytes: incoming.begunBytes }).toEqual({
    calls: 0,
    bytes: 0,
    begunBytes: sent,
  })
})
