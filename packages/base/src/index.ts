export { type ErrorParts, isPostgradError, PostgradError, type WorkerHop } from './errors.js'
export { checkWorkerId, globalId, IdCounter, LOCAL_ID_MAX, localOf, WORKER_ID_MAX, type WorkerId, workerOf } from './global-id.js'
export { currentScope, inScope, Scope, type ScopePatch, withScope } from './scope.js'
