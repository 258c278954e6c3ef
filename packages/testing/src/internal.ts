/** What sibling packages get: the inlined program's parts and the kinds of messages. */
export { MESSAGE_KINDS, messageKind } from './faults/message-kind.js'
export { InlinedRRef, InlinedWorker } from './inlined/inlined-worker.js'
