/** Taking a rank, by the log alone: without processes and connections. */
import { describe, expect, test } from '@jest/globals'
import type { WorkerId } from '@postgrad/base'
import { HashStore } from '@postgrad/transport'
import { RealClock } from '@postgrad/transport/internal'
import { Group } from './group.js'
import { type Arrival, GroupLog } from './group-log.js'

const clock = new RealClock()
const WAIT_MS = 50
const arrival = (rank: number, id: number): Arrival => ({
  what: 'joined',
  id: id as WorkerId,
  name: `worker${rank}`,
  rank,
  worldSize: 2,
  addresses: [],
  visitor: id,
  role: 'member',
})

function setUp() {
  const store = new HashStore(clock)
  const group = (rank: number) =>
    new Group(new GroupLog(store), { meeting: { kind: 'file', path: '' }, rank, worldSize: 2, round: 0 }, clock, WAIT_MS)
  return { log: new GroupLog(store), group }
}

describe('INI-6 a rank', () => {
  test('is taken a third time, when its second holder has died too', async () => {
    const { log, group } = setUp()
    for (const entry of [arrival(0, 0), arrival(1, 1)]) await log.append(entry)
    await log.append({ what: 'died', id: 1, detail: '' })
    await log.append(arrival(1, 2))
    await log.append({ what: 'died', id: 2, detail: '' })
    const third = group(1)
    await third.come(arrival(1, 3), 2, 1000)
    expect(third.others).toBe(1)
  })

  test('is free when whoever wanted it before never came', async () => {
    const { log, group } = setUp()
    await log.append(arrival(0, 0))
    const second = group(1)
    await second.come(arrival(1, 2), 1, 1000)
    expect(second.others).toBe(1)
  })

  test('is not free while its holder lives', async () => {
    const { log, group } = setUp()
    for (const entry of [arrival(0, 0), arrival(1, 1)]) await log.append(entry)
    await expect(group(1).come(arrival(1, 2), 1, 1000)).rejects.toMatchObject({
      code: 'RENDEZVOUS_CONFLICT',
      remedy: 'Give each process a rank of its own, or end the other process first.',
    })
  })
})

describe('INI-4 a name', () => {
  test('is free when whoever had it has gone, and not while he is there, whoever of them has come first', async () => {
    const { log, group } = setUp()
    const former = { ...arrival(1, 1), name: 'one' }
    const entries = [arrival(0, 0), former]
    for (const entry of entries) await log.append(entry)
    const own = { ...arrival(1, 2), name: 'one' }
    await log.append({ what: 'left', id: 1, detail: '' })
    const second = group(1)
    await second.come(own, 1, 1000)
    expect(second.others).toBe(1)
    await expect(group(0).come({ ...arrival(0, 3), name: 'one' }, 0, 1000)).rejects.toMatchObject({
      code: 'RENDEZVOUS_CONFLICT',
      remedy: 'Give each process a name of its own.',
    })
  })

  test('and a rank that another has taken away are told to whoever waits for the rest', async () => {
    const { log, group } = setUp()
    const coming = group(1).come(arrival(1, 1), 0, 5000)
    while (!(await log.read({ timeoutMs: 1000 })).what.startsWith('joined'));
    await log.append({ what: 'died', id: 1, detail: 'its name is that of another' })
    await expect(coming).rejects.toMatchObject({
      code: 'RENDEZVOUS_CONFLICT',
      message: expect.stringContaining('which the group declared dead: its name is that of another. Call init again'),
    })
  })
})
