/** The contract over a MessageChannel, then tests that need real threads: order under load, a thread that ends, a thread that is terminated. */
import { once } from 'node:events'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { afterEach, describe, expect, test } from '@jest/globals'
import { RealClock } from './clock.js'
import { describeLink, frame, Recorder } from './link.suite.js'
import { messagePortLink } from './message-port-link.js'

const clock = new RealClock()
const sleep = (ms: number) => new Promise<void>((resolve) => clock.setTimer(ms, resolve))
const until = async (done: () => boolean) => {
  const limitMs = clock.now() + 10_000
  while (!done() && clock.now() < limitMs) await sleep(1)
}

describeLink('the MessagePort link', {
  make() {
    const { port1, port2 } = new MessageChannel()
    const a = messagePortLink(port1)
    const b = messagePortLink(port2)
    return {
      a,
      b,
      dispose() {
        a.close()
        b.close()
      },
    }
  },
  until,
  async turns() {
    await sleep(3)
  },
})

/** Ended after each test, also one that failed: a thread that is left would keep the whole run alive. */
const started: Worker[] = []

afterEach(async () => {
  await Promise.all(started.splice(0).map((worker) => worker.terminate()))
})

/** A thread whose link does as `mode` says, see `message-port-link.fixture.ts`. */
function startThread(mode: string): { worker: Worker; port: MessagePort; ended: Promise<number> } {
  const { port1, port2 } = new MessageChannel()
  const worker = new Worker(new URL('./message-port-link.fixture.js', import.meta.url), {
    workerData: { mode, port: port2 },
    transferList: [port2],
  })
  started.push(worker)
  return { worker, port: port1, ended: new Promise((resolve) => worker.once('exit', resolve)) }
}

test('abandon: everything that has arrived, then onClose as if the peer had ended, also of a link that is opened later', async () => {
  for (const opensFirst of [true, false]) {
    const { port1, port2 } = new MessageChannel()
    const [link, other] = [messagePortLink(port1), messagePortLink(port2)]
    const [here, there] = [new Recorder(), new Recorder()]
    other.open(there)
    if (opensFirst) link.open(here)
    other.send(frame('last'))
    other.flush()
    link.abandon!('its thread has ended')
    if (!opensFirst) link.open(here)
    await until(() => here.closed !== null && there.closed !== null)
    expect([here.texts, here.closed, there.closed?.by]).toEqual([
      opensFirst ? ['last'] : [],
      { by: 'peer', detail: 'its thread has ended' },
      'peer',
    ])
  }
})

describe('the MessagePort link between threads', () => {
  test('50,000 frames with segments echo in order, both threads at work', async () => {
    const { worker, port, ended } = startThread('echo')
    const link = messagePortLink(port)
    const got = new Recorder()
    link.open(got)
    const count = 50_000
    for (let i = 0; i < count; i++) {
      link.send(frame(`${i}`, ...(i % 10 === 0 ? [new Uint8Array(i % 20_000)] : [])))
      if (i % 5000 === 0) await sleep(0)
    }
    await until(() => got.frames.length === count)
    expect(got.texts.every((t, i) => t === `${i}`)).toBe(true)
    expect(got.frames.every((f, i) => (i % 10 === 0 ? f.segments[0]?.length === i % 20_000 : f.segments.length === 0))).toBe(true)
    link.close()
    await worker.terminate()
    await ended
  })

  test('a thread that is terminated: everything received is delivered first, then onClose(peer)', async () => {
    const { worker, port, ended } = startThread('flood')
    const link = messagePortLink(port)
    const got = new Recorder()
    // Not opened yet: all of it waits in the port while the thread dies.
    await once(worker, 'message')
    await worker.terminate()
    await ended
    link.open(got)
    await until(() => got.closed !== null)
    expect(got.closed?.by).toBe('peer')
    expect(got.texts).toEqual(Array.from({ length: 1000 }, (_, i) => `${i}`))
    expect(got.events.at(-1)).toBe('close:peer:1000')
    expect(() => link.send(frame('late'))).toThrow(expect.objectContaining({ code: 'LINK_CLOSED' }))
  })

  test('a port that has closed before its thread came to listen: onClose(peer) all the same', async () => {
    const { worker, port, ended } = startThread('late')
    port.close()
    const heard = new Promise((resolve) => worker.once('message', resolve))
    expect(await Promise.race([heard, ended.then(() => 'nothing')])).toBe('closed by peer')
    await ended
  })

  test('a thread that is terminated in a flood: no hole in front of onClose', async () => {
    const { worker, port, ended } = startThread('endless')
    const link = messagePortLink(port)
    const got = new Recorder()
    link.open(got)
    await until(() => got.frames.length > 5000)
    await worker.terminate()
    await ended
    await until(() => got.closed !== null)
    expect(got.closed?.by).toBe('peer')
    expect(got.texts.every((t, i) => t === `${i}`)).toBe(true)
    expect(got.events.at(-1)).toBe(`close:peer:${got.frames.length}`)
  })

  test('a thread that ends by itself after its last send: the frames, then onClose(peer)', async () => {
    const { port, ended } = startThread('goodbye')
    const link = messagePortLink(port)
    const got = new Recorder()
    link.open(got)
    await until(() => got.closed !== null)
    expect(got.texts).toEqual(['one', 'two'])
    expect(got.events.at(-1)).toBe('close:peer:2')
    await ended
  })

  test('poll sees frames of another thread while this one never returns to its loop', async () => {
    const { worker, port, ended } = startThread('echo')
    const link = messagePortLink(port)
    const got = new Recorder()
    link.open(got)
    link.send(frame('ping'))
    await until(() => got.frames.length === 1)
    link.send(frame('pong'))
    link.flush()
    const limitMs = clock.now() + 5000
    while (got.frames.length < 2 && clock.now() < limitMs) link.poll()
    expect(got.texts).toEqual(['ping', 'pong'])
    link.close()
    await worker.terminate()
    await ended
  })

  test('a receiver that throws at every frame gets all of them, in order', async () => {
    const { worker, port, ended } = startThread('throw')
    const link = messagePortLink(port)
    const got = new Recorder()
    link.open(got)
    for (let i = 0; i < 200; i++) {
      link.send(frame(`${i}`))
      if (i % 60 === 0) await sleep(0)
    }
    await until(() => got.frames.length === 200)
    link.close()
    await worker.terminate()
    await ended
    expect(got.texts).toEqual(Array.from({ length: 200 }, (_, i) => `${i}`))
  })

  test('posts that come in while the rest of an earlier one is due do not overtake it', async () => {
    const { worker, port, ended } = startThread('throw')
    const link = messagePortLink(port)
    const got = new Recorder()
    link.open(got)
    let sent = 0
    const post = (frames: number) => {
      for (let i = 0; i < frames; i++) link.send(frame(`${sent++}`))
      link.flush()
    }
    post(1)
    await until(() => got.frames.length === 1)
    for (let i = 0; i < 400; i++) {
      post(i % 4 === 0 ? 5 : 1)
      await sleep(i % 3 === 0 ? 1 : 0)
    }
    await until(() => got.frames.length === sent)
    link.close()
    await worker.terminate()
    await ended
    expect(got.texts).toEqual(Array.from({ length: sent }, (_, i) => `${i}`))
  })

  test('an open link keeps its thread alive; with unref it does not', async () => {
    const kept = startThread('wait')
    const free = startThread('wait-unref')
    await free.ended
    let keptEnded = false
    kept.ended.then(() => {
      keptEnded = true
    })
    await sleep(50)
    expect(keptEnded).toBe(false)
    messagePortLink(kept.port).close()
    await kept.ended
    free.port.close()
  })
})
