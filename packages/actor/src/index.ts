export { DEAD_LETTER_REASONS, type DeadLetter, type DeadLetterReason } from './dead-letters.js'
export type { Inspection, Wait } from './inspection.js'
export type { LaneName } from './lanes.js'
export type { DeathCause, WorkerDeath } from './liveness.js'
