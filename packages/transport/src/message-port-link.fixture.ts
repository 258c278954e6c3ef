/**
 * The other thread of `message-port-link.real.test.ts`: opens a link on its port and does as the mode says.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { Frame } from './link.js'
import { messagePortLink } from './message-port-link.js'

const { mode, port } = workerData as { mode: string; port: MessagePort }
// As a thread that loads for long before it comes to its ports.
if (mode === 'late') await new Promise((resolve) => setTimeout(resolve, 200))
const link = messagePortLink(port, { unref: mode === 'wait-unref' })
const text = (t: string): Frame => ({ header: new Uint8Array(Buffer.from(t)), segments: [] })

// Each exception of the receiver is an uncaught one of the thread, which this thread survives.
if (mode === 'throw') process.on('uncaughtException', () => {})

link.open({
  onFrame(frame) {
    if (mode === 'echo') link.send(frame)
    if (mode === 'throw') {
      link.send(frame)
      throw new Error('a receiver must not throw, but if it does')
    }
  },
  onTurnEnd() {},
  onClose({ by }) {
    if (mode === 'late') parentPort!.postMessage(`closed by ${by}`)
  },
})

if (mode === 'flood') {
  for (let i = 0; i < 1000; i++) link.send(text(`${i}`))
  link.flush()
  parentPort!.postMessage('sent')
} else if (mode === 'endless') {
  let next = 0
  const more = () => {
    for (let i = 0; i < 100; i++) link.send(text(`${next++}`))
    setImmediate(more)
  }
  more()
} else if (mode === 'goodbye') {
  link.send(text('one'))
  link.send(text('two'))
  link.close()
}
