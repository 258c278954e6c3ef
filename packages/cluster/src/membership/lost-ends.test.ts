/** An end of a link that is lost with the thread that it was on its way to: the holder of the other end learns of the death all the same. */
import { expect, test } from '@jest/globals'
import type { WorkerId } from '@postgrad/base'
import type { WorkerInfo } from '@postgrad/rpc'
import type { WorkerRuntime } from '@postgrad/rpc/internal'
import type { Link } from '@postgrad/transport'
import { type MemberControl, Members, type PeerEnd } from './members.js'
import { PeerLinks } from './peer-links.js'
import type { PeerInfo } from './roster.js'

/** A host whose workers have loaded at once. They answer `connect` if they are not in `mute`. */
class Host {
  readonly mute = new Set<string>()
  /** What each worker was sent. */
  readonly sent: string[] = []
  readonly closed: string[] = []
  readonly members = new Members<string>(this)

  connect(a: WorkerInfo, b: WorkerInfo): readonly [string, string] {
    return [`${a.name}>${b.name}`, `${b.name}>${a.name}`]
  }
  close(end: string): void {
    this.closed.push(end)
  }
  spawn({ worker: { name } }: { readonly worker: WorkerInfo }): MemberControl<string> {
    return {
      start: () => Promise.resolve(),
      connect: (peers: readonly PeerEnd<string>[], gone: readonly WorkerInfo[]) => {
        this.sent.push(`${name}: ${[...peers.map(({ end }) => end), ...gone.map((worker) => `${worker.name} has ended`)].join(' ')}`)
        return this.mute.has(name) ? new Promise(() => {}) : Promise.resolve()
      },
    }
  }
  end(id: WorkerId): void {
    this.members.gone(id)
  }
  joined(): void {}
  ended(): void {}
  joinError(_change: unknown, _worker: unknown, cause: unknown): unknown {
    return cause
  }
}

const change = { op: 'cluster.join', timeoutMs: 0 }

test('MEM-13 a worker that dies while an end of a link is on its way to it: the holder of the other end is notified', async () => {
  const host = new Host()
  const [a] = await host.members.start(['a', 'b'], change)
  host.mute.add('a')
  const joining = host.members.start(['c'], change)
  await new Promise((resolve) => setImmediate(resolve))
  expect(host.sent.splice(0)).toEqual(['a: a>c', 'b: b>c'])
  host.members.gone(a!.id)
  await joining
  // b learns of it by the end of its link, which a has had for long.
  expect(host.sent).toEqual(['c: a has ended'])
})

test('MEM-13 nobody is notified if it has its ends, or if they have not left', async () => {
  const host = new Host()
  const [a] = await host.members.start(['a', 'b'], change)
  await host.members.start(['c'], change)
  host.sent.length = 0
  host.members.gone(a!.id)
  expect(host.sent).toEqual([])

  const other = new Host()
  const [first] = await other.members.start(['a'], change)
  const failing = other.members.start(['b'], change).catch(() => 'failed')
  other.members.gone(first!.id)
  expect([await failing, other.sent, other.closed]).toEqual([[{ name: 'b', id: 1 }], [], ['a>b']])
})

test('MEM-13 a notified worker ends its link after a while, if it has not closed by itself', async () => {
  const timers: (() => void)[] = []
  const runtime = {
    onPeerDeath: () => {},
    onClose: () => {},
    noteDeath: () => {},
    isLinkedTo: () => false,
    connect: () => {},
    clock: { setTimer: (_ms: number, fn: () => void) => timers.push(fn) },
  } as unknown as WorkerRuntime
  const ended: string[] = []
  const links = new PeerLinks<PeerInfo>(runtime, ({ info }) => ({
    link: { abandon: (detail: string) => ended.push(`${info.name}: ${detail}`) } as unknown as Link,
    transport: null,
  }))
  const [a, b] = [
    { name: 'a', id: 0 },
    { name: 'b', id: 1 },
  ]
  await links.connect([{ info: a, isGuest: false }], [])
  await links.connect([], [a, b])
  expect([timers.length, ended]).toEqual([1, []])
  timers[0]!()
  expect(ended).toEqual(['a: its thread has ended'])
})
