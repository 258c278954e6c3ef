/** What sibling packages get: the owner's side of the distributed optimizer, and where checkpoints lie. */
export { type CheckpointDisk, type DiskFile, fileDisk, syncDisk, useCheckpointDisk } from './checkpoint/disk.js'
export { LocalOptimizer, makeLocalOptimizer } from './local-optimizer.js'
