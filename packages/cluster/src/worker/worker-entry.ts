/** What a worker's thread loads first. */
import { threadSide } from '../host/thread-side.js'
import { runWorker } from './worker.js'

runWorker(threadSide())
