export { type DeadLetter, type DeadLetterReason, DeadLetters } from './dead-letters.js'
export { Liveness, type NoticedDeath } from './liveness.js'
export { Source } from './mailbox.js'
export { Pump } from './pump.js'
export {
  type Child,
  type ChildSpec,
  type Exit,
  type Restart,
  type RestartOptions,
  SHUTDOWN_MS,
  type Strategy,
  Supervisor,
  type SupervisorOptions,
} from './supervisor.js'
