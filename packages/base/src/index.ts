export { type ErrorParts, isPostgradError, PostgradError, type WorkerHop } from './errors.js'
export { localOf, type WorkerId, workerOf } from './global-id.js'
