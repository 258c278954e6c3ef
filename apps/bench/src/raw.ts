/** The raw limit: two threads and a MessagePort between them, nothing else; one post per message. */
import { inThread, ThreadPair, WINDOW } from './thread-pair.js'

export const rawPair = (): ThreadPair => new ThreadPair(import.meta.url)

inThread(
  import.meta.url,
  (port) => port.on('message', (value) => port.postMessage(value)),
  (port) =>
    ({ work, n }) =>
      new Promise((done) => {
        let sent = 0
        let received = 0
        const send = () => port.postMessage(++sent)
        port.removeAllListeners('message')
        port.on('message', () => {
          if (++received === n) done()
          else if (sent < n) send()
        })
        for (let i = 0; i < (work === 'roundTrip' ? 1 : Math.min(n, WINDOW)); i++) send()
      }),
)
