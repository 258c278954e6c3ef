/** For sibling packages: the inlined program's parts and the kinds of messages. */
export { MESSAGE_KINDS, messageKind } from './faults/message-kind.js'
export { InlinedCaller, InlinedRRef } from './inlined/inlined-caller.js'
