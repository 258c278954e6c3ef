/** For sibling packages: the owner's side of the distributed optimizer, and disks of checkpoints. */
export { type CheckpointDisk, type DiskFile, fileDisk, syncDisk, useCheckpointDisk } from './checkpoint/disk.js'
export { LocalOptimizer, makeLocalOptimizer } from './local-optimizer.js'
