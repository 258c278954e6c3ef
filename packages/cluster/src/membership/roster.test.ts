/** The roster by itself: its commands after each event, and random programs. Rules MEM-n in SPEC.md. */
import { describe, expect, test } from '@jest/globals'
import { type Command, MAIN_ID, Roster } from './roster.js'
import { runRosterProgram } from './roster-programs.suite.js'

/** Commands in words, in their order. */
function told(commands: readonly Command[]): string[] {
  return commands.map((command) => {
    switch (command.do) {
      case 'connect':
        return `connect ${command.a.id} ${command.b.id}`
      case 'spawn': {
        const { worker, life, peers, gone } = command.birth
        return `spawn ${worker.name}#${worker.id} life ${life}: ${ids(peers.map(({ info }) => info))}; gone ${ids(gone)}`
      }
      case 'tell':
        return `tell ${command.to}: ${ids(command.peers.map(({ info }) => info))}; gone ${ids(command.gone)}`
      case 'drop':
        return `drop ${command.a} ${command.b}`
      case 'end':
        return `end ${command.id}`
      case 'joined':
        return `joined ${command.workers.map(({ worker, former }) => `${worker.id}${former === null ? '' : ` for ${former}`}`).join()}`
      default:
        return `${command.do} ${command.group}`
    }
  })
}

const ids = (infos: readonly { readonly id: number }[]): string => infos.map(({ id }) => id).join() || '-'

/** A roster whose first workers are members: a is 0, b is 1, … */
function rosterOf(...names: string[]): Roster {
  const roster = new Roster()
  roster.join(names)
  for (const id of names.keys()) roster.loaded(id)
  return roster
}

describe('a join', () => {
  test('MEM-3 a newcomer is born with ends to all members, who get theirs when it has been loaded', () => {
    const roster = rosterOf('a', 'b')
    const { group, commands } = roster.join(['c'])
    expect(told(commands)).toEqual(['connect 2 0', 'connect 2 1', 'spawn c#2 life 0: 0,1; gone -'])
    expect(roster.workers.map(({ name }) => name)).toEqual(['a', 'b'])
    expect(told(roster.loaded(2))).toEqual(['tell 0: 2; gone -', 'tell 1: 2; gone -'])
    expect(told(roster.answered(0, group))).toEqual([])
    expect(roster.standingOf(2)).toBe('joining')
    expect(told(roster.answered(1, group))).toEqual(['joined 2'])
    expect(roster.workers.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  })

  test('MEM-2 of a group all are told of together, when the last one has been loaded', () => {
    const roster = rosterOf('a')
    expect(told(roster.join(['b', 'c']).commands)).toEqual([
      'connect 1 2',
      'connect 1 0',
      'connect 2 0',
      'spawn b#1 life 0: 2,0; gone -',
      'spawn c#2 life 0: 1,0; gone -',
    ])
    expect(told(roster.loaded(2))).toEqual([])
    expect(told(roster.loaded(1))).toEqual(['tell 0: 1,2; gone -'])
  })

  test('MEM-3 of two joins at once the one that is loaded later links them, once', () => {
    const roster = rosterOf('a')
    roster.join(['b'])
    roster.join(['c'])
    expect(told(roster.loaded(2))).toEqual(['tell 0: 2; gone -'])
    expect(told(roster.loaded(1))).toEqual(['connect 1 2', 'tell 1: 2; gone -', 'tell 0: 1; gone -', 'tell 2: 1; gone -'])
  })

  test('MEM-7 nobody waits for the answer of one that has ended', () => {
    const roster = rosterOf('a', 'b')
    const { group } = roster.join(['c'])
    roster.loaded(2)
    roster.answered(0, group)
    expect(told(roster.gone(1))).toEqual(['joined 2'])
  })

  test('MEM-8 if one of a group cannot, all of it end', () => {
    const roster = rosterOf('a')
    const { group } = roster.join(['b', 'c'])
    expect(told(roster.failed(1))).toEqual(['end 1', 'end 2'])
    expect(told(roster.gone(1))).toEqual(['drop 1 0', 'tell 0: -; gone 1'])
    expect(() => roster.join(['c'])).toThrow(expect.objectContaining({ code: 'WORKER_NAME_TAKEN' }))
    expect(told(roster.gone(2))).toEqual(['drop 2 0', 'tell 0: -; gone 2', `failed ${group}`])
    expect(roster.workers.map(({ name }) => name)).toEqual(['a'])
    expect(told(roster.join(['c']).commands).at(-1)).toBe('spawn c#3 life 1: 0; gone 1,2')
  })

  test('MEM-1 a name that is alive or being started is taken; ids are spent one day', () => {
    const roster = rosterOf('a')
    roster.join(['b'])
    for (const name of ['a', 'b'])
      expect(() => roster.join(['c', name])).toThrow(
        expect.objectContaining({ code: 'WORKER_NAME_TAKEN', values: expect.objectContaining({ worker: name }) }),
      )
    roster.gone(0)
    expect(told(roster.join(['a']).commands).at(-1)).toBe('spawn a#2 life 1: -; gone 0')
    const names = Array.from({ length: MAIN_ID - 3 }, (_, i) => `n${i}`)
    const spent = new Roster()
    spent.join([])
    expect(() => rosterOf().join([...names, 'x', 'y', 'z', 'w'])).toThrow(expect.objectContaining({ code: 'WORKER_IDS_SPENT' }))
  })
})

describe('an end', () => {
  test('MEM-6 who has no link to a worker hears of its end by a word, who has one does not', () => {
    const roster = rosterOf('a', 'b')
    roster.join(['c'])
    roster.join(['d'])
    roster.loaded(2)
    // d began before c became a member, and does not know it.
    expect(told(roster.gone(2))).toEqual(['tell 3: -; gone 2', 'failed 1'])
  })

  test('MEM-9 an end that nobody lives to get is dropped', () => {
    const roster = rosterOf('a', 'b')
    roster.join(['c'])
    expect(told(roster.gone(0))).toEqual(['drop 2 0'])
    expect(told(roster.leaving(1))).toEqual(['drop 2 1'])
    expect(told(roster.loaded(2))).toEqual(['joined 2'])
  })

  test('MEM-5 newcomers are not linked with one that is leaving, and hear of its end', () => {
    const roster = rosterOf('a', 'b')
    expect(told(roster.leaving(1))).toEqual([])
    expect(told(roster.join(['c']).commands)).toEqual(['connect 2 0', 'spawn c#2 life 0: 0; gone -'])
    expect(told(roster.loaded(2))).toEqual(['tell 0: 2; gone -'])
    expect(told(roster.gone(1))).toEqual(['tell 2: -; gone 1'])
  })

  test('MEM-6 it is told once, however often it is said', () => {
    const roster = rosterOf('a', 'b')
    roster.join(['c'])
    roster.loaded(2)
    expect(roster.gone(1)).not.toBeNull()
    expect(roster.gone(1)).toEqual([])
    expect(roster.gone(77)).toEqual([])
  })
})

describe('a restart', () => {
  test('MEM-1 the name goes on to the new one when it joins, and back if it fails', () => {
    const roster = rosterOf('a', 'b')
    roster.gone(1)
    const first = roster.join(['b'])
    roster.loaded(2)
    expect(roster.workers.map(({ id }) => id)).toEqual([0, 2])
    expect(told(roster.gone(2))).toEqual([`failed ${first.group}`])
    expect(roster.workers.map(({ id }) => id)).toEqual([0, 1])
    const second = roster.join(['b'])
    roster.loaded(3)
    expect(told(roster.answered(0, second.group))).toEqual(['joined 3 for 1'])
    expect(roster.workers.map(({ id }) => id)).toEqual([0, 3])
  })

  test('MEM-1 a name whose worker has ended can be forgotten, one that lives cannot', () => {
    const roster = rosterOf('a', 'b')
    roster.gone(1)
    roster.forget('a')
    roster.forget('b')
    expect(roster.workers.map(({ name }) => name)).toEqual(['a'])
  })
})

test('MEM-10 a guest is linked with all members and hears of all that ended; newcomers are linked with it', () => {
  const roster = rosterOf('a', 'b')
  roster.gone(1)
  const { group, commands } = roster.enter({ name: 'main', id: MAIN_ID })
  expect(told(commands)).toEqual([`connect ${MAIN_ID} 0`, `tell ${MAIN_ID}: 0; gone 1`, `tell 0: ${MAIN_ID}; gone -`])
  roster.answered(MAIN_ID, group)
  expect(told(roster.answered(0, group))).toEqual([`joined ${MAIN_ID}`])
  expect(roster.workers.map(({ name }) => name)).toEqual(['a', 'b'])
  expect(told(roster.join(['c']).commands).at(-1)).toBe(`spawn c#2 life 0: 0,${MAIN_ID}; gone 1`)
  expect(() => roster.join(['main'])).toThrow(expect.objectContaining({ code: 'WORKER_NAME_TAKEN' }))
})

test('MEM-1 to MEM-10 whatever happens in whatever order: when nothing is under way, every two living workers are linked once, and know all deaths', () => {
  const sums = { joined: 0, restarted: 0, left: 0, died: 0, failed: 0 }
  for (let seed = 1; seed <= 3000; seed++) {
    const { problems, counts } = runRosterProgram(seed)
    expect(problems).toEqual([])
    for (const [what, count] of Object.entries(counts)) sums[what as keyof typeof sums] += count
  }
  process.stdout.write(`      random programs for the roster: ${JSON.stringify(sums)}\n`)
  for (const count of Object.values(sums)) expect(count).toBeGreaterThan(500)
})
