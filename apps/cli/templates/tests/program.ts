/** Three workers add to a sum that a fourth one keeps. One way to do it has a race, which the tests find. */
import { add, call, currentWorker, expose, type Tensor, tensor, workerLocal } from 'postgrad'

export const ADDERS = ['adder1', 'adder2', 'adder3']
/** In float32 the order matters: 1e8 + 1 - 1e8 is 0. */
const PARTS = [1e8, 1, -1e8]

/** On the keeper. */
const state = workerLocal(() => ({ sum: tensor(0), parts: new Map<string, Tensor>() }))
const addNow = (part: Tensor): void => {
  state().sum = add(state().sum, part)
}
const keep = (name: string, part: Tensor): void => void state().parts.set(name, part)
const sumSoFar = (): Tensor => state().sum
/** Adds in the order of the names, not in that in which the parts came. */
const sumInOrder = (): Tensor => ADDERS.map((name) => state().parts.get(name)!).reduce((sum, part) => add(sum, part))

/** On an adder. */
const partHere = (): Tensor => tensor(PARTS[ADDERS.indexOf(currentWorker().info.name)]!)
const sendToAdd = () => call('keeper', addNow, [partHere()])
const sendToKeep = () => call('keeper', keep, [currentWorker().info.name, partHere()])

/** On the keeper. With the race: each part is added when it arrives. */
export async function racySum(): Promise<Tensor> {
  await Promise.all(ADDERS.map((name) => call(name, sendToAdd)))
  return sumSoFar()
}

/** On the keeper. Repaired. */
export async function sum(): Promise<Tensor> {
  await Promise.all(ADDERS.map((name) => call(name, sendToKeep)))
  return sumInOrder()
}

expose({ addNow, keep, sendToAdd, sendToKeep, racySum, sum })
