/** What a worker's thread loads first. */
import nodeModule from 'node:module'
import { workerSide } from '../processes/worker-side.js'
import { runWorker } from './worker.js'

// From 22.1 on Node keeps what it has compiled of programs, stripped of their types, in a folder of the machine's: four workers of a program in TypeScript are ready in two
// thirds of the time. NODE_DISABLE_COMPILE_CACHE=1 forbids it.
const { enableCompileCache } = nodeModule as { enableCompileCache?: () => unknown }
enableCompileCache?.()

runWorker(workerSide())
