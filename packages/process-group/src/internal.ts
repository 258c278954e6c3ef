/** For sibling packages: installs process groups on a worker, and runs collectives of the siblings' own. */
export { RESERVED_TAGS, recvReserved, sendReserved } from './api/point-to-point.js'
export { notInitialized } from './common/errors.js'
export { What } from './common/protocol.js'
export type { Algorithm, Place, Step } from './common/step.js'
export { currentProcessGroups, ProcessGroups } from './group/process-groups.js'
export { installProcessGroups } from './install.js'
