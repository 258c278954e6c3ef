/** What a worker's thread loads first. */
import nodeModule from 'node:module'

// From 22.1 on Node keeps what it has compiled in a folder of the machine's; threads that start later read it there. NODE_DISABLE_COMPILE_CACHE=1 forbids it.
const { enableCompileCache } = nodeModule as { enableCompileCache?: () => unknown }
enableCompileCache?.()
// Behind that, or they would be compiled without it.
const [{ threadSide }, { runWorker }] = await Promise.all([import('../host/thread-side.js'), import('./worker.js')])

runWorker(threadSide())
