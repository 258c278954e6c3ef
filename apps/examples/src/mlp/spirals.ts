/** Points on the arms of a spiral, which the example classifies by arm. */
import { type Generator, type Tensor, tensor } from 'postgrad'

export const ARMS = 3
/** Of the noise, in radians, from −half to half. */
const NOISE = 0.6

export interface Points {
  /** [ARMS · perArm, 2] */
  readonly points: Tensor
  /** int32 [ARMS · perArm]: the arm of each. */
  readonly labels: Tensor
}

export function spirals(generator: Generator, perArm: number): Points {
  const all = Array.from({ length: ARMS * perArm }, (_, i) => {
    const arm = i % ARMS
    const radius = Math.floor(i / ARMS) / perArm
    const angle = 4 * radius + (2 * Math.PI * arm) / ARMS + NOISE * (generator.uniform() - 0.5)
    return { arm, at: [radius * Math.cos(angle), radius * Math.sin(angle)] }
  })
  return {
    points: tensor(all.map(({ at }) => at)),
    labels: tensor(
      all.map(({ arm }) => arm),
      { dtype: 'int32' },
    ),
  }
}
