/**
 * Comlink's endpoint over a MessagePort of `node:worker_threads`. Comlink has an adapter for Node, too; this one can also be drained: when the
 * other thread has died, its earlier results still count, and must be delivered before the rest is rejected.
 */

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { PortEnd } from './port-end.js'
import type { Control } from './worker-host.js'

type Listener = (event: { readonly data: unknown }) => void

export class NodeEndpoint implements Control {
  private readonly port: MessagePort
  private readonly listeners = new Set<Listener>()
  private readonly deliver = (data: unknown): void => {
    for (const listener of [...this.listeners]) listener({ data })
  }

  private closed = false

  constructor(port: MessagePort) {
    this.port = port
    port.on('close', () => {
      this.closed = true
    })
    port.on('message', this.deliver)
  }

  // biome-ignore lint/suspicious/noExplicitAny: comlink's own signature
  postMessage(message: any, transfer: readonly object[] = []): void {
    this.port.postMessage(message, transfer.map(movable))
  }

  onMessage(listen: (message: unknown) => void): void {
    this.listeners.add(({ data }) => listen(data))
  }

  addEventListener(_type: string, listener: unknown): void {
    this.listeners.add(asListener(listener))
  }

  removeEventListener(_type: string, listener: unknown): void {
    this.listeners.delete(asListener(listener))
  }

  /** Delivers synchronously what has arrived already. After 'close' there is nothing left, and to look would crash Node 20 (the port's data is gone). */
  drain(): void {
    if (this.closed) return
    for (let got = receiveMessageOnPort(this.port); got !== undefined; got = receiveMessageOnPort(this.port)) this.deliver(got.message)
  }

  close(): void {
    this.port.close()
    // Comlink's register holds this object until its proxy is collected, and the listeners hold the proxy.
    this.listeners.clear()
  }
}

/** Comlink registers plain functions only; the DOM's type also allows listener objects. */
function asListener(listener: unknown): Listener {
  if (typeof listener !== 'function') throw new TypeError('NodeEndpoint takes functions as listeners')
  return listener as Listener
}

/** Of the end of a link it is the port that is moved. */
function movable(one: object): MessagePort {
  return (one as Partial<PortEnd>).port ?? (one as MessagePort)
}
