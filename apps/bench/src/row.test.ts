/** A row from what its contestants measured: medians, the aim in both directions, and how it reads in the table. */
import { describe, expect, test } from '@jest/globals'
import { type Contestant, measure, median, type RowPlan } from './row.js'
import { rowText, tableHead } from './table.js'

/** Gives these times, in s per unit of work, after a warm-up that takes the first one. */
function contestant(perUnit: readonly number[], log: number[] = []): Contestant {
  let turn = -1
  return async (n) => {
    log.push(n)
    return n * perUnit[Math.max(0, turn++)]!
  }
}

/** n is such that one turn of warm-up is enough: the slowest takes a second. */
function plan(more: Partial<RowPlan>): RowPlan {
  return {
    name: 'row',
    unit: 's',
    n: 10,
    warm: 1,
    figure: (seconds, n) => seconds / n,
    higherIsBetter: false,
    ours: contestant([1, 3, 2]),
    limit: contestant([1, 1, 1]),
    peers: {},
    aim: (limit) => 2 * limit,
    ...more,
  }
}

const nothing = () => {}

test('the median of odd and even numbers of turns, whatever their order', () => {
  expect(median([5])).toBe(5)
  expect(median([9, 1, 5])).toBe(5)
  expect(median([9, 1, 5, 3])).toBe(4)
  const values = [3, 1, 2]
  median(values)
  expect(values).toEqual([3, 1, 2])
})

describe('a row', () => {
  test('has exactly its keys; figures are medians over the turns, the aim comes from the limit beside it', async () => {
    const row = await measure(plan({ peers: { other: { run: contestant([7, 9, 8]) } } }), 3, nothing)
    expect(row).toEqual({ name: 'row', unit: 's', ours: 2, limit: 1, peers: { other: 8 }, aim: 2, met: true, warm: 10, first: 1 })
    expect(Object.keys(row)).toEqual(['name', 'unit', 'ours', 'limit', 'peers', 'aim', 'met', 'warm', 'first'])
  })

  test.each([
    [false, 1.9, true],
    [false, 2, true],
    [false, 2.1, false],
    [true, 1.9, false],
    [true, 2, true],
    [true, 2.1, true],
  ])('where higher is better is %s, %d against an aim of 2 is met: %s', async (higherIsBetter, ours, met) => {
    const row = await measure(plan({ higherIsBetter, ours: contestant([ours]) }), 1, nothing)
    expect(row.met).toBe(met)
  })

  test('a slower peer does its share of the work, at least one unit, and is measured per unit all the same', async () => {
    const [tenth, least]: [number[], number[]] = [[], []]
    const peers = { tenth: { run: contestant([4], tenth), share: 0.1 }, least: { run: contestant([5], least), share: 1e-6 } }
    const row = await measure(plan({ n: 20, peers }), 1, nothing)
    expect(row.peers).toEqual({ tenth: 4, least: 5 })
    expect(new Set(tenth)).toEqual(new Set([2]))
    expect(new Set(least)).toEqual(new Set([1]))
  })

  test('ours works as often as it is said before it is measured, or not at all', async () => {
    const done = async (warm: number): Promise<readonly [number, number, number]> => {
      const [ours, limit]: [number[], number[]] = [[], []]
      const row = await measure(plan({ warm, ours: contestant([1], ours), limit: contestant([1], limit) }), 1, nothing)
      return [row.warm, ours.length, limit.length]
    }
    expect(await done(0)).toEqual([0, 1, 2])
    expect(await done(5)).toEqual([10, 2, 2])
    expect(await done(11)).toEqual([20, 3, 3])
    // So long that it would take more than 20 s: two turns are 20.
    expect(await done(1000)).toEqual([20, 3, 3])
  })

  test('every row does its work 3,000 times first, its limit too, and says what the first 100 cost', async () => {
    const [ours, limit, peer]: [number[], number[], number[]] = [[], [], []]
    const { warm: _, ...unsaid } = plan({ n: 500 })
    const slowAtFirst = (log: number[]): Contestant => {
      return async (n) => {
        log.push(n)
        return n * (log.length === 1 ? 0.01 : 0.002)
      }
    }
    const others = { other: { run: slowAtFirst(peer) } }
    const row = await measure({ ...unsaid, ours: slowAtFirst(ours), limit: slowAtFirst(limit), peers: others }, 1, nothing)
    expect(row).toMatchObject({ warm: 3100, first: 0.01, ours: 0.002 })
    expect(ours).toEqual([100, 500, 500, 500, 500, 500, 500, 500])
    expect(limit).toEqual(ours)
    expect(peer).toEqual([100, 500])
    expect((await measure(plan({ warm: 0 }), 1, nothing)).first).toBeNull()
  })

  test('contestants take turns', async () => {
    const order: string[] = []
    const named = (name: string): Contestant => {
      return async () => {
        order.push(name)
        return 1
      }
    }
    let ticks = 0
    await measure(plan({ ours: named('ours'), limit: named('limit') }), 2, () => ticks++)
    expect(order).toEqual(['ours', 'limit', 'ours', 'limit', 'ours', 'limit'])
    expect(ticks).toBe(2)
  })
})

describe('the table', () => {
  const row = {
    name: 'pipelined calls',
    unit: 'calls/s',
    ours: 250_000.4,
    limit: 500_000,
    peers: { comlink: 56.78 },
    aim: 300_000,
    met: false,
    warm: 40_000,
    first: 90_000,
  }

  test('a line has the figures, the ratio to the limit, the verdict and the peers', () => {
    expect(rowText(row).split(/ {2,}/)).toEqual([
      'pipelined calls',
      'calls/s',
      '250,000',
      '90,000',
      '500,000',
      '0.50',
      '300,000',
      '40,000',
      'NO',
      'comlink 56.8',
    ])
    expect(rowText({ ...row, met: true, peers: {} })).toMatch(/ {2}yes {2}$/)
    expect(rowText({ ...row, warm: 0, first: null })).toMatch(/ 250,000 +- .* {2}cold {2}NO/)
  })

  test('its head stands above the columns, and names PyTorch where it runs', () => {
    const head = tableHead('1.13')
    expect(head).toMatch(/^beside PyTorch 1\.13\n/)
    const columns = tableHead(null)
    const line = rowText(row)
    for (const [title, figure] of [
      ['ours', '250,000'],
      ['first', '90,000'],
      ['limit', '500,000'],
      ['ratio', '0.50'],
      ['aim', '300,000'],
      ['warm', '40,000'],
    ] as const)
      expect(line.indexOf(figure) + figure.length).toBe(columns.indexOf(title) + title.length)
  })
})
