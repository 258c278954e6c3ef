export { FAULT_KINDS } from './faults.js'
export { mix32, Random } from './random.js'
export { FairSchedule, ReplaySchedule, SeedSchedule } from './schedule.js'
export { SimWorld, type SimWorldOptions, STEPS_MAX } from './world.js'
