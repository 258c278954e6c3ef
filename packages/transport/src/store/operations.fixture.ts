/** Operations at random on a store, by several users, one after the other, next to a Map that does the same. */
import { expect } from '@jest/globals'
import type { Store } from './store.js'

/** Numbers from 0 to n - 1 from a seed: mulberry32. */
export function numbersFrom(seed: number): (n: number) => number {
  let state = seed
  return (n) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % n
  }
}

const codeOf = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error) => error.code)

/** `replace` may give another user for one, as after a restart. */
export async function randomOperations(
  seed: number,
  users: Store[],
  count: number,
  between: (at: number, random: (n: number) => number) => Promise<void> = async () => {},
): Promise<void> {
  const random = numbersFrom(seed)
  const model = new Map<string, string>()
  const keys = ['a', 'b', 'ä€', '']
  const values = ['', '1', '-7', 'text', '😀', 'y'.repeat(300)]
  const one = <T>(list: readonly T[]): T => list[random(list.length)]!
  for (let i = 0; i < count; i++) {
    await between(i, random)
    const user = one(users)
    const key = one(keys)
    const there = model.get(key)
    const where = `seed ${seed}, step ${i}`
    const is = (got: unknown, expected: unknown) => expect([where, got]).toEqual([where, expected])
    switch (random(7)) {
      case 0: {
        const value = one(values)
        await user.set(key, value)
        model.set(key, value)
        break
      }
      case 1: {
        const amount = random(21) - 10
        const isNumber = there === undefined || /^-?\d+$/.test(there)
        const sum = Number(there ?? 0) + amount
        is(await codeOf(user.add(key, amount)), isNumber ? sum : 'STORE_NOT_A_NUMBER')
        if (isNumber) model.set(key, String(sum))
        break
      }
      case 2: {
        const [before, after] = [random(2) ? one(values) : (there ?? ''), one(values)]
        const isPut = (there ?? '') === before
        is(Buffer.from(await user.compareSet(key, before, after)).toString(), isPut ? after : (there ?? before))
        if (isPut) model.set(key, after)
        break
      }
      case 3:
        is(await user.deleteKey(key), model.delete(key))
        break
      case 4:
        is(await user.numKeys(), model.size)
        break
      case 5:
        is(await user.check([key, one(keys)].slice(0, 1)), there !== undefined)
        break
      default:
        is(await codeOf(user.getText(key, { timeoutMs: 1 })), there ?? 'STORE_TIMEOUT')
    }
  }
  for (const user of users) {
    expect([seed, await user.numKeys()]).toEqual([seed, model.size])
    for (const [key, value] of model) expect([seed, key, await user.getText(key)]).toEqual([seed, key, value])
  }
}
