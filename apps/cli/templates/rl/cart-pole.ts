/** CartPole-v1: a pole on a cart stays upright as long as the cart is pushed to the right side. Replace it by your own environment, with the same exports. */
import type { Generator } from 'postgrad'

/** Position in m, speed, angle in rad, angular speed. */
export type State = readonly [x: number, v: number, angle: number, spin: number]

const [GRAVITY, POLE_MASS, MASS, HALF_LENGTH, FORCE, SECONDS] = [9.8, 0.1, 1.1, 0.5, 10, 0.02]
export const STEPS_MAX = 500
/** Numbers of a state. */
export const STATE_SIZE = 4
/** How many actions there are; an action is a number from 0. */
export const ACTIONS = 2

export const start = (random: Generator): State => {
  const draw = () => 0.1 * (random.uniform() - 0.5)
  return [draw(), draw(), draw(), draw()]
}

/** @param action 0 pushes to the left, 1 to the right */
export function next([x, v, angle, spin]: State, action: number): State {
  const [sin, cos] = [Math.sin(angle), Math.cos(angle)]
  const push = ((action === 1 ? FORCE : -FORCE) + POLE_MASS * HALF_LENGTH * spin ** 2 * sin) / MASS
  const spinUp = (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4 / 3 - (POLE_MASS * cos ** 2) / MASS))
  const speedUp = push - (POLE_MASS * HALF_LENGTH * spinUp * cos) / MASS
  return [x + SECONDS * v, v + SECONDS * speedUp, angle + SECONDS * spin, spin + SECONDS * spinUp]
}

/** The reward of a step that led to this state. */
export const reward = (_next: State): number => 1

/** The cart has left the track, or the pole is more than 12 degrees off. */
export const isOver = ([x, , angle]: State): boolean => Math.abs(x) > 2.4 || Math.abs(angle) > Math.PI / 15
