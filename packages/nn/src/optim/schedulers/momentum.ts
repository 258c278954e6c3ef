/** The momentum of a group, which some schedulers move against the rate: `momentum`, or the first of `betas`. */
import { invalidArgument } from '@postgrad/tensor/internal'
import type { Scheduled, ScheduledGroup } from './lr-scheduler.js'

export function setMomentum(group: ScheduledGroup, value: number): void {
  if (group.betas !== undefined) group.betas = [value, group.betas[1]]
  else group.momentum = value
}

/** @throws INVALID_ARGUMENT when a group has no momentum to cycle; `betas` says whether the first of betas counts */
export function checkMomentum(op: string, { paramGroups }: Scheduled, betas: boolean): void {
  if (paramGroups.every((group) => group.momentum !== undefined || (betas && group.betas !== undefined))) return
  const expected = `groups with ${betas ? 'momentum or betas' : 'momentum'}`
  throw invalidArgument(op, expected, 'a group without', 'Pass { cycleMomentum: false }, or use an optimizer that has it.')
}
