/** The random numbers of workers. */
import { describe, expect, test } from '@jest/globals'
import { withScope } from '@postgrad/base/internal'
import { type Generator, rand } from '@postgrad/tensor'
import { workerGenerator } from './worker-generator.js'

const draw = (generator: Generator, n = 8) => withScope({ generator }, () => [...rand([n]).dataSync()])

describe('the generator of a worker', () => {
  test('RPC-38: the same seed and name give the same numbers', () => {
    expect(draw(workerGenerator(7, 'trainer'))).toEqual(draw(workerGenerator(7, 'trainer')))
  })

  test('RPC-38: another name or another seed gives others', () => {
    const drawn = new Set<string>()
    const names = ['worker0', 'worker1', 'worker2', 'trainer', 'ps', 'a', 'b', 'ab', 'ba']
    for (const seed of [0, 1, 2, -1, 2 ** 31, 123456789]) for (const name of names) drawn.add(draw(workerGenerator(seed, name)).join())
    expect(drawn.size).toBe(6 * names.length)
  })

  test('RPC-38: each life of a name has numbers of its own, the same in every run; the first those of the name', () => {
    expect(draw(workerGenerator(7, 'a', 0))).toEqual(draw(workerGenerator(7, 'a')))
    expect(draw(workerGenerator(7, 'a', 2))).toEqual(draw(workerGenerator(7, 'a', 2)))
    expect(new Set([0, 1, 2, 3].map((life) => draw(workerGenerator(7, 'a', life)).join())).size).toBe(4)
  })

  test("RPC-38: one worker's draws do not move another's", () => {
    const a = workerGenerator(7, 'a')
    const b = workerGenerator(7, 'b')
    const alone = draw(workerGenerator(7, 'b'))
    draw(a, 100)
    expect(draw(b)).toEqual(alone)
  })
})
