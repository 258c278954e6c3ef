/** Values from PyTorch, written by `scripts/golden/examples.py`, for tests. */
import { readFileSync } from 'node:fs'
import { type Tensor, tensor } from 'postgrad'
import type { StateDict } from 'postgrad/nn'

export interface Values {
  readonly shape: readonly number[]
  readonly values: readonly number[]
}

export const readGolden = <G>(name: string): G =>
  JSON.parse(readFileSync(new URL(`../../golden/${name}.json`, import.meta.url), 'utf8')) as G

export const floats = ({ shape, values }: Values): Tensor => tensor([...values]).reshape([...shape])
export const ints = ({ shape, values }: Values): Tensor => tensor([...values], { dtype: 'int32' }).reshape([...shape])
export const stateOf = (state: Readonly<Record<string, Values>>): StateDict =>
  Object.fromEntries(Object.entries(state).map(([name, values]) => [name, floats(values)]))
