/** Ratings to learn: hidden tastes decide how a user rates an item. A few users are very active, most hardly ever, as with real ratings. */
import { type Generator, type Tensor, tensor } from 'postgrad'

const TASTES = 2
/** How much more often some are drawn than others. */
const POWER = 12

export interface Ratings {
  /** int32 [N] each: who rates what. */
  readonly users: Tensor
  readonly items: Tensor
  /** [N] */
  readonly ratings: Tensor
}

/** `count` ratings of `users` by `items` possible ones. */
export function rated(generator: Generator, count: number, users: number, items: number): Ratings {
  // A power prefers small numbers: half of all ratings are of the first 2⁻¹² of the users.
  const draw = (n: number) => Math.floor(n * generator.uniform() ** POWER)
  const pairs = Array.from({ length: count }, () => [draw(users), draw(items)] as const)
  const ints = (values: number[]) => tensor(values, { dtype: 'int32' })
  return {
    users: ints(pairs.map(([user]) => user)),
    items: ints(pairs.map(([, item]) => item)),
    ratings: tensor(pairs.map(([user, item]) => truth(user, item))),
  }
}

/** Of tastes that follow from the numbers alone; its mean is 0 and its variance 1. */
function truth(user: number, item: number): number {
  let sum = 0
  for (let k = 1; k <= TASTES; k++) sum += Math.sin(12.9898 * k * (user + 1)) * Math.cos(78.233 * k * (item + 1))
  return (2 * sum) / Math.sqrt(TASTES)
}
