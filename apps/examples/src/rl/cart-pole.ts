/**
 * CartPole, written out: a pole on a cart, to be kept upright by pushing the cart left or right (Barto, Sutton and Anderson 1983; equations of Florian 2007
 * without friction, Euler steps). Constants and limits are those of Gym's CartPole-v1.
 */
import { Generator } from 'postgrad'

const GRAVITY = 9.8
const CART_MASS = 1
const POLE_MASS = 0.1
const TOTAL_MASS = CART_MASS + POLE_MASS
/** Half of the pole's length, in m. */
const HALF_LENGTH = 0.5
const FORCE = 10
/** s per step. */
const TAU = 0.02
const POSITION_MAX = 2.4
const ANGLE_MAX = (12 * 2 * Math.PI) / 360
/** Each of the four numbers begins within this of 0. */
const START = 0.05
export const STEPS_MAX = 500

/** Position (m), velocity, angle (rad), angular velocity. */
export type State = readonly [x: number, v: number, angle: number, spin: number]

export interface Step {
  readonly state: State
  readonly reward: number
  /** The cart has left the track, or the pole has fallen. */
  readonly fallen: boolean
  /** It has fallen, or `STEPS_MAX` is reached. */
  readonly ended: boolean
}

export class CartPole {
  private readonly random: Generator
  private state: State = [0, 0, 0, 0]
  private steps = 0

  /** Same seed, same beginnings. */
  constructor(seed: number) {
    this.random = new Generator(seed)
  }

  reset(): State {
    const draw = () => START * (2 * this.random.uniform() - 1)
    this.state = [draw(), draw(), draw(), draw()]
    this.steps = 0
    return this.state
  }

  /** @param action 0 pushes to the left, 1 to the right */
  step(action: number): Step {
    this.state = next(this.state, action)
    this.steps++
    const [x, , angle] = this.state
    const fallen = Math.abs(x) > POSITION_MAX || Math.abs(angle) > ANGLE_MAX
    return { state: this.state, reward: 1, fallen, ended: fallen || this.steps >= STEPS_MAX }
  }
}

/** The state after one push. */
export function next([x, v, angle, spin]: State, action: number): State {
  const force = action === 1 ? FORCE : -FORCE
  const [sin, cos] = [Math.sin(angle), Math.cos(angle)]
  const push = (force + POLE_MASS * HALF_LENGTH * spin ** 2 * sin) / TOTAL_MASS
  const spinUp = (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4 / 3 - (POLE_MASS * cos ** 2) / TOTAL_MASS))
  const acceleration = push - (POLE_MASS * HALF_LENGTH * spinUp * cos) / TOTAL_MASS
  return [x + TAU * v, v + TAU * acceleration, angle + TAU * spin, spin + TAU * spinUp]
}
