export { InlinedRRef, InlinedWorker } from './inlined-worker.js'
