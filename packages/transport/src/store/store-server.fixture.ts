/** A thread that serves a store from a file over the ports that it is given, for `store-server.real.test.ts`. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { RealClock } from '../clock.js'
import { messagePortLink } from '../message-port-link.js'
import { StoreServer } from './store-server.js'

const server = new StoreServer({ clock: new RealClock(), file: (workerData as { path: string }).path })
parentPort!.on('message', (port: MessagePort) => server.accept(messagePortLink(port)))
parentPort!.postMessage('ready')
