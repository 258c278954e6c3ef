/**
 * A worker's own side of its host: `threadSide` for a thread of the cluster's process. For a thread of another process, which `process-agent.ts` has started, the
 * same with sockets to workers elsewhere.
 */
import { setImmediate } from '@postgrad/base/internal'
import type { PortEnd } from '../host/port-end.js'
import { threadSide } from '../host/thread-side.js'
import type { LinkEnd, OpenedLink, WorkerSide } from '../host/worker-host.js'
import { type InProcess, type KeyedEnd, type ProcessEndToken, portKey, type ToThread } from './process-protocol.js'
import { ProcessSockets } from './process-sockets.js'

/** To be called once, by what a host starts. */
export function workerSide(): WorkerSide {
  const side = threadSide()
  return (side.boot as Partial<InProcess>).inProcess === true ? processSide(side) : side
}

function processSide(side: WorkerSide): WorkerSide {
  const { boot, worker, sockets: socketBoot, ends } = side.boot as InProcess
  const sockets = new ProcessSockets(socketBoot, worker, side, dies)
  const ports = new Map<string, LinkEnd>()
  const keep = (keyed: readonly KeyedEnd[]): void => {
    for (const [key, end] of keyed) ports.set(key, end)
  }
  keep(ends)
  side.control.onMessage((message) => {
    const event = message as ToThread | { readonly event?: undefined } | null
    if (event?.event === 'ends') keep(event.ends)
    else if (event?.event === 'ended') sockets.ended(event.id)
  })
  const open = (end: LinkEnd): OpenedLink => {
    const { token } = end as unknown as { readonly token: ProcessEndToken }
    if (token.kind === 'socket') return sockets.link(token.peer)
    const key = portKey(token)
    const port = ports.get(key) as PortEnd
    ports.delete(key)
    return side.open(port)
  }
  return { ...side, boot, open }
}

/** Others would wait for ever for a worker that cannot be dialled. */
function dies(error: unknown): void {
  setImmediate(() => {
    throw error
  })
}
