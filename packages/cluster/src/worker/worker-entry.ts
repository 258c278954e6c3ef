/**
 * What a worker's thread loads first. It does not ask Node to keep compiled code (`module.enableCompileCache`): unless a user names a folder by NODE_COMPILE_CACHE, and then Node does so by
 * itself in each thread, that is a folder of the machine's, which another user may have made, and from which Node runs what it finds.
 */
import { workerSide } from '../processes/worker-side.js'
import { runWorker } from './worker.js'

runWorker(workerSide())
