/**
 * The main thread of a process that a cluster has started (`process-host.ts`): it starts the process's workers as threads, and passes on messages between
 * them and the cluster. It runs no code of the program, so it answers while the workers are busy. If the cluster's process ends, it ends this one.
 */
import type { WorkerId } from '@postgrad/base'
import { ownFile, setInterval } from '@postgrad/base/internal'
import { oneOfSeveral } from '@postgrad/transport/internal'
import type { Payload } from '@postgrad/wire/internal'
import { runPayloads } from '../admin/run-payloads.js'
import { sharedHeap } from '../host/shared-heap.js'
import { ThreadHost } from '../host/thread-host.js'
import type { HostedExit, HostedWorker, LinkEnd } from '../host/worker-host.js'
import { withOwnBuffers } from './own-buffers.js'
import {
  type FromProcess,
  type InProcess,
  type KeyedEnd,
  type ProcessEndToken,
  portKey,
  type SocketBoot,
  type ToProcess,
  type ToThread,
} from './process-protocol.js'
import { removeSocketFolder } from './socket-folder.js'

/** How often it is looked who has come to a turn. */
const LOOK_MS = 50

interface Hosted {
  readonly worker: HostedWorker
  /** As the cluster knows it. */
  beats: number
}

/** Both ends of a link between two threads here; null: given away, or closed. */
type Pair = [LinkEnd | null, LinkEnd | null]

/** @param entry what threads load first; default a worker of postgrad's */
export function runAgent(entry: URL = ownFile('processes', 'cluster', 'worker/worker-entry.js')): void {
  new ProcessAgent(entry)
}

class ProcessAgent {
  private readonly entry: URL
  private host!: ThreadHost
  private sockets!: SocketBoot
  private readonly payloads = runPayloads(null)
  private readonly hosted = new Map<WorkerId, Hosted>()
  private readonly pairs = new Map<number, Pair>()

  constructor(entry: URL) {
    this.entry = entry
    process.on('message', (message) => this.hear(message as ToProcess))
    // The cluster's process has ended or let go: whatever still runs here runs for nobody.
    process.once('disconnect', () => {
      removeSocketFolder(this.sockets.folder)
      process.exit(0)
    })
    // A terminal's Ctrl-C, and its end, reach every process of the group; the cluster's process decides what becomes of it.
    for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
    setInterval(() => this.look(), LOOK_MS).unref()
  }

  private hear(message: ToProcess): void {
    switch (message.do) {
      case 'begin':
        // Before the first thread, which inherits that.
        oneOfSeveral()
        this.host = new ThreadHost(this.entry, sharedHeap(message.heapBytes))
        this.sockets = message.sockets
        return
      case 'admit':
        this.host.admit(message.worker)
        return
      case 'spawn':
        this.spawn(message)
        return
      case 'control': {
        const hosted = this.hosted.get(message.id)
        if (hosted === undefined) {
          // It has ended, and the cluster did not know yet: holders of the other ends learn it now.
          for (const [, end] of this.keyed(message.ends)) end.close()
          return
        }
        this.giveEnds(hosted.worker, message.ends)
        hosted.worker.control.postMessage(withOwnBuffers(message.message))
        return
      }
      case 'close-control':
        this.hosted.get(message.id)?.worker.control.close()
        return
      case 'taken':
        this.hosted.get(message.id)?.worker.taken.add()
        return
      case 'kill':
        tell({ tell: 'ending', id: message.id })
        void this.hosted.get(message.id)?.worker.kill()
        return
      case 'close-end':
        if (message.end.kind === 'port') this.take(message.end).close()
        return
      case 'release':
        this.host.release(message.id)
        return
      case 'ended':
        for (const [id, { worker }] of this.hosted) {
          if (message.to === null || message.to === id) worker.control.postMessage({ event: 'ended', id: message.id } satisfies ToThread)
        }
        return
      case 'end':
        process.exit(0)
        return
      default:
        message satisfies never
    }
  }

  private spawn({ worker: info, boot, ends, wantsOut, wantsErr, resourceLimits, env }: ToProcess & { readonly do: 'spawn' }): void {
    const { id } = info
    const keyed = this.keyed(ends)
    const inProcess: InProcess = { inProcess: true, boot, worker: info, sockets: this.sockets, ends: keyed }
    const output = (stream: 'stdout' | 'stderr') => (text: string) => tell({ tell: 'output', id, stream, text })
    let worker: HostedWorker
    try {
      worker = this.host.spawn({
        worker: info,
        boot: inProcess,
        ends: keyed.map(([, end]) => end),
        stdout: wantsOut ? output('stdout') : undefined,
        stderr: wantsErr ? output('stderr') : undefined,
        resourceLimits,
        env,
        onExit: (exit) => this.ended(id, exit),
      })
    } catch (error) {
      for (const [, end] of keyed) end.close()
      tell({ tell: 'exit', id, exitCode: 1, thrown: this.payloads.encodeError(error) })
      return
    }
    this.hosted.set(id, { worker, beats: 0 })
    worker.control.onMessage((message) => tell({ tell: 'control', id, message }))
  }

  private ended(id: WorkerId, { exitCode, thrown }: HostedExit): void {
    this.hosted.delete(id)
    const payload: Payload | null = thrown === undefined ? null : this.payloads.encodeError(thrown)
    tell({ tell: 'exit', id, exitCode, thrown: payload })
  }

  private giveEnds({ control }: HostedWorker, tokens: readonly ProcessEndToken[]): void {
    const ends = this.keyed(tokens)
    if (ends.length === 0) return
    const moved = ends.map(([, end]) => end)
    control.postMessage({ event: 'ends', ends } satisfies ToThread, moved)
  }

  private keyed(tokens: readonly ProcessEndToken[]): KeyedEnd[] {
    return tokens.flatMap((token): KeyedEnd[] => (token.kind === 'port' ? [[portKey(token), this.take(token)]] : []))
  }

  private take({ key, a, b, side }: ProcessEndToken & { readonly kind: 'port' }): LinkEnd {
    const pair: Pair = this.pairs.get(key) ?? [...this.host.link(a, b)]
    const end = pair[side]!
    pair[side] = null
    if (pair.every((one) => one === null)) this.pairs.delete(key)
    else this.pairs.set(key, pair)
    return end
  }

  private look(): void {
    const beats: [WorkerId, number][] = []
    for (const [id, hosted] of this.hosted) {
      const { value } = hosted.worker.beats
      if (value !== hosted.beats) beats.push([id, value])
      hosted.beats = value
    }
    if (beats.length > 0) tell({ tell: 'beats', beats })
  }
}

function tell(message: FromProcess): void {
  // The channel may just have closed: then the message is lost, and this process ends.
  if (process.connected) process.send!(message)
}
