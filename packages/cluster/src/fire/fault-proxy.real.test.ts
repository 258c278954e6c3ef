/** The proxy does the harm that a test asks for, and no other. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { Random } from '@postgrad/sim/internal'
import { type Fault, FaultProxy } from './fault-proxy.fixture.js'

const HOST = '127.0.0.1'
const SENT = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251))
const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

interface Heard {
  bytes: Buffer
  /** 'end', 'error' and 'close', as they came. */
  readonly events: string[]
}

function hearing(socket: Socket): Heard {
  const heard: Heard = { bytes: Buffer.alloc(0), events: [] }
  socket.on('data', (bytes: Buffer) => {
    heard.bytes = Buffer.concat([heard.bytes, bytes])
  })
  for (const event of ['end', 'error', 'close']) socket.on(event, () => heard.events.push(event))
  return heard
}

/** A server that answers with the first byte it gets, and the proxy in front of it. */
async function setUp() {
  const heard: Heard[] = []
  const sockets: Socket[] = []
  const server: Server = createServer((socket) => {
    sockets.push(socket)
    heard.push(hearing(socket))
    socket.once('data', (bytes: Buffer) => socket.write(bytes.subarray(0, 1)))
  })
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve))
  const { port } = server.address() as { port: number }
  const proxy = await FaultProxy.start({ listen: { host: HOST, port: 0 }, target: { host: HOST, port }, random: new Random(1) })
  ends.push(() => new Promise((resolve) => server.close(resolve)))
  ends.push(async () => {
    for (const socket of sockets) socket.destroy()
  })
  ends.push(() => proxy.close())
  const dial = () => {
    const socket = connect({ host: HOST, port: proxy.port })
    ends.push(async () => socket.destroy())
    return { socket, heard: hearing(socket) }
  }
  return { proxy, heard, sockets, dial }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2))
}

test('without a fault all passes, both ways, with its end', async () => {
  const { heard, dial } = await setUp()
  const one = dial()
  one.socket.end(SENT)
  await until(() => one.heard.events.includes('close'))
  expect([heard[0]!.bytes.equals(SENT), one.heard.bytes.length, heard[0]!.events, one.heard.events]).toEqual([
    true,
    1,
    ['end', 'close'],
    ['end', 'close'],
  ])
})

test.each<Fault>([
  { what: 'delay', ms: 20 },
  { what: 'throttle', bytesPerMs: 100 },
])('%j brings all, later', async (fault) => {
  const { proxy, heard, dial } = await setUp()
  proxy.begin(fault)
  const beganMs = performance.now()
  const one = dial()
  one.socket.write(SENT)
  await until(() => heard[0]?.bytes.length === SENT.length)
  expect(heard[0]!.bytes.equals(SENT)).toBe(true)
  // A timer is never early, so each fault takes at least that long.
  expect(performance.now() - beganMs).toBeGreaterThanOrEqual(9)
})

test('a stall keeps all, with its order, until it is over', async () => {
  const { proxy, heard, dial } = await setUp()
  const one = dial()
  one.socket.write(SENT.subarray(0, 500))
  await until(() => one.heard.bytes.length === 1)
  proxy.begin({ what: 'stall' })
  one.socket.write(SENT.subarray(500))
  await new Promise((resolve) => setTimeout(resolve, 30))
  expect(heard[0]!.bytes.length).toBe(500)
  proxy.heal()
  await until(() => heard[0]!.bytes.length === SENT.length)
  expect(heard[0]!.bytes.equals(SENT)).toBe(true)
})

test('a cut breaks what there is, and refuses what comes', async () => {
  const { proxy, heard, dial } = await setUp()
  const one = dial()
  one.socket.write(SENT)
  await until(() => one.heard.bytes.length === 1)
  proxy.begin({ what: 'cut' })
  await until(() => one.heard.events.includes('close') && heard[0]!.events.includes('close'))
  expect([one.heard.events, heard[0]!.events]).toEqual([
    ['error', 'close'],
    ['error', 'close'],
  ])
  const two = dial()
  await until(() => two.heard.events.includes('close'))
  proxy.heal()
  const three = dial()
  three.socket.write(SENT)
  await until(() => three.heard.bytes.length === 1)
  expect(proxy.counts).toMatchObject({ connections: 2, broken: 1, refused: 1 })
})

test('a connection that is broken while one side has just said its last word leaves nothing open', async () => {
  const open = (): number => process.getActiveResourcesInfo().filter((what) => what === 'TCPSocketWrap').length
  const { proxy, dial } = await setUp()
  // Its last word leaves within some ticks; in between Node resets no connection, and says nothing more of it.
  for (const ticks of [0, 1, 2, 3, 4]) {
    const one = dial()
    one.socket.write(SENT)
    await until(() => one.heard.bytes.length === 1)
    proxy.begin({ what: 'stall' })
    one.socket.end()
    await new Promise((resolve) => setTimeout(resolve, 20))
    proxy.heal()
    for (let tick = 0; tick < ticks; tick++) await new Promise<void>((resolve) => process.nextTick(resolve))
    proxy.breakAll()
    await until(() => one.heard.events.includes('close'))
  }
  await until(() => open() === 0)
})

test('half-open: one direction is lost for good, its end too; the other goes on', async () => {
  const { proxy, heard, sockets, dial } = await setUp()
  const one = dial()
  one.socket.write(SENT)
  await until(() => one.heard.bytes.length === 1)
  proxy.begin({ what: 'half-open', direction: 'inbound' })
  one.socket.write(SENT)
  sockets[0]!.write('more')
  await until(() => one.heard.bytes.length === 5 && proxy.counts.swallowed === SENT.length)
  one.socket.destroy()
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect([heard[0]!.bytes.length, heard[0]!.events]).toEqual([SENT.length, []])
  proxy.heal()
  await until(() => heard[0]!.events.includes('close'))
})

test.each<[Fault, number]>([
  [{ what: 'inject', bytes: 7 }, 7],
  [{ what: 'flip' }, 0],
])('%j harms each connection once', async (fault, more) => {
  const { proxy, heard, dial } = await setUp()
  proxy.begin(fault)
  const one = dial()
  one.socket.write(SENT)
  await until(() => heard[0]?.bytes.length === SENT.length + more)
  expect(heard[0]!.bytes.equals(SENT)).toBe(false)
  one.socket.write(SENT)
  await until(() => heard[0]!.bytes.length === 2 * SENT.length + more)
  expect(heard[0]!.bytes.subarray(-SENT.length).equals(SENT)).toBe(true)
})

test('reorder: connections that come wait, and go on in an order of its own', async () => {
  const { proxy, heard, dial } = await setUp()
  proxy.begin({ what: 'reorder' })
  const all = Array.from({ length: 6 }, (_, i) => {
    const one = dial()
    one.socket.write(Buffer.from([i]))
    return one
  })
  await until(() => proxy.counts.held === all.length)
  expect(heard).toEqual([])
  proxy.heal()
  await until(() => all.every((one) => one.heard.bytes.length === 1))
  const order = heard.map(({ bytes }) => bytes[0])
  expect(order.toSorted()).toEqual([0, 1, 2, 3, 4, 5])
  expect(order).not.toEqual([0, 1, 2, 3, 4, 5])
  expect(all.map((one) => one.heard.bytes[0])).toEqual([0, 1, 2, 3, 4, 5])
})
