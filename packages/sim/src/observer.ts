/**
 * What a world tells of a run to whoever wants to know which of its steps could have come in another order: which step uses what, and what made it
 * possible. `explore` stands on it; nobody else pays for it. Steps are numbered as in the trace, from 1; 0 is what ran before the first.
 */
import type { PossibleChoice } from './schedule.js'

/** What fault rules count, as something that steps use: see `StepObserver.touch`. */
export const FAULT_RULES = '(fault rules)'

export interface StepObserver {
  /** A step begins; behind the schedule's answer, if it was asked. The step before it is over, with all that followed from it. */
  begin(choice: PossibleChoice): void
  /** Before `begin`: nothing else could happen, so time goes on. What can happen from here on could not have happened before. */
  jump(): void
  /** The step could not have come before that one, which put there what it begins with, or opened the link. */
  cause(step: number): void
  /** The step uses what belongs to a worker: its clock, an end of a link; or something else with a name, whose uses must keep their order. */
  touch(name: string): void
  /** The step does something that every worker may notice: one crashes, or is linked again. */
  touchAll(): void
  /** The step puts something into a channel, named by its label. */
  put(channel: string): void
  /** What the step does depends on whether something is in flight in a channel. */
  look(channel: string): void
  /** An event of the step, as the trace has it. */
  event(kind: string, from: string, to: string, hash: number): void
}
