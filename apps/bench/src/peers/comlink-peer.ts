/** The empty call by comlink, between two threads, as JavaScript programmers would do it today. */
import { expose, wrap } from 'comlink'
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs'
import { inThread, ThreadPair, WINDOW } from '../thread-pair.js'

const service = { noop: () => null }

export const comlinkPair = (): ThreadPair => new ThreadPair(import.meta.url)

inThread(
  import.meta.url,
  (port) => expose(service, nodeEndpoint(port)),
  (port) => {
    const remote = wrap<typeof service>(nodeEndpoint(port))
    return async ({ work, n }) => {
      if (work === 'roundTrip') for (let i = 0; i < n; i++) await remote.noop()
      else for (let i = 0; i < n; i += WINDOW) await Promise.all(Array.from({ length: Math.min(WINDOW, n - i) }, () => remote.noop()))
    }
  },
)
