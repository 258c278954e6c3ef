/**
 * The entry of a worker's thread. It does not ask Node to keep compiled code (`module.enableCompileCache`): Node runs the code that it finds in that folder, and the default folder is the
 * machine's, so another user may have made it. If NODE_COMPILE_CACHE names a folder, Node uses that in each thread by itself.
 */
import { workerSide } from '../processes/worker-side.js'
import { runWorker } from './worker.js'

runWorker(workerSide())
