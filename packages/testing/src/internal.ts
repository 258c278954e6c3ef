/** What sibling packages get: the acceptance cases, which their tests run on threads, and the inlined program's parts. */
export { errorProblems } from './cases/error-check.js'
export { differences, type Golden, readGolden } from './cases/golden.js'
export * as cases from './cases/program.js'
export { InlinedRRef, InlinedWorker } from './inlined-worker.js'
export { MESSAGE_KINDS, messageKind } from './message-kind.js'

/** The module that `launch` loads to run the cases. */
export const casesProgram = new URL('./cases/program.js', import.meta.url)
