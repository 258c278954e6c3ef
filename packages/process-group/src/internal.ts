/** What sibling packages get: how a worker is given process groups, and what runs collectives of their own. */
export { RESERVED_TAGS, recvReserved, sendReserved } from './api/point-to-point.js'
export { What } from './common/protocol.js'
export type { Algorithm, Place, Step } from './common/step.js'
export { currentProcessGroups, ProcessGroups } from './group/process-groups.js'
export { installProcessGroups } from './install.js'
