export { checkWorkerId, globalId, IdCounter, LOCAL_ID_MAX, WORKER_ID_MAX } from './global-id.js'
export { currentScope, inScope, Scope, type ScopePatch, withScope } from './scope.js'
export { checkTime, timeLimit } from './timeout.js'
export { importModule, locateModule } from './user-module.js'
