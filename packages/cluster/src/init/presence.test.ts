/** Presence by connections, over links in memory. */
import { describe, expect, test } from '@jest/globals'
import type { LinkReceiver } from '@postgrad/transport'
import { memoryLinkPair, RealClock } from '@postgrad/transport/internal'
import { Presence, type Visitor } from './presence.js'

const clock = new RealClock()
const GRACE_MS = 20
const ONE: Visitor = { name: 'one', id: 40_000, role: 'member' }

function setUp() {
  const gone: Visitor[] = []
  const presence = new Presence(clock, GRACE_MS, (visitor) => gone.push(visitor))
  const connect = (visitor: Visitor) => {
    const [there, here] = memoryLinkPair(clock)
    const ends: string[] = []
    const receiver: LinkReceiver = { onFrame() {}, onTurnEnd() {}, onClose: ({ by }) => ends.push(by) }
    const link = presence.over(here, visitor)
    link.open(receiver)
    there.open({ ...receiver, onClose() {} })
    return { there, here, link, ends }
  }
  return { presence, gone, connect }
}

const wait = (ms: number) => new Promise<void>((resolve) => clock.setTimer(ms, resolve))

async function until(isSo: () => boolean): Promise<void> {
  for (let looks = 0; looks < 500 && !isSo(); looks++) await wait(5)
  expect(isSo()).toBe(true)
}

describe('INI-5 who serves the store', () => {
  test('hears of a process that has let its last connection go, once', async () => {
    const { gone, connect } = setUp()
    const [first, second] = [connect(ONE), connect(ONE)]
    first.there.close()
    await wait(3 * GRACE_MS)
    expect(gone).toEqual([])
    second.there.close()
    await until(() => gone.length > 0)
    await wait(3 * GRACE_MS)
    expect(gone).toEqual([ONE])
  })

  test('does not take a process for gone whose former connection it has ended itself, since there is another', async () => {
    const { gone, connect } = setUp()
    const [former] = [connect(ONE), connect(ONE)]
    former.link.close()
    expect([former.link.closed, former.here.closed]).toEqual([true, true])
    await wait(3 * GRACE_MS)
    expect([former.ends, gone]).toEqual([['self'], []])
  })

  test('INI-17 reads what came while it stood still before it takes anybody for gone', async () => {
    const { presence, gone, connect } = setUp()
    presence.expect(ONE)
    // As bytes that wait at a socket: timers that are due go first.
    setImmediate(() => connect(ONE))
    const endMs = clock.now() + 3 * GRACE_MS
    while (clock.now() < endMs);
    await wait(3 * GRACE_MS)
    expect(gone).toEqual([])
  })

  test.each([{ name: 'two' }, { role: 'observer' }])('tells two processes of one id apart by their names and roles: %j', async (more) => {
    const { gone, connect } = setUp()
    const other = { ...ONE, ...more }
    const [one] = [connect(ONE), connect(other)]
    one.there.close()
    await until(() => gone.length > 0)
    expect(gone).toEqual([ONE])
  })

  test('INI-14 expects those that came before it served', async () => {
    const { presence, gone, connect } = setUp()
    const back = { name: 'back', id: 7, role: 'member' }
    for (const visitor of [ONE, back]) presence.expect(visitor)
    connect(back)
    await until(() => gone.length > 0)
    await wait(3 * GRACE_MS)
    expect(gone).toEqual([ONE])
    presence.expect(ONE)
    presence.close()
    await wait(3 * GRACE_MS)
    expect(gone).toEqual([ONE])
  })
})
