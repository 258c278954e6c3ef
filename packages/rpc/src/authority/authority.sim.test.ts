/** A cluster of two members and an observer: what it may do, what it may not, and what becomes of every kind of message that it forges. */
import { describe, expect, test } from '@jest/globals'
import { isPostgradError } from '@postgrad/base'
import { Random } from '@postgrad/sim/internal'
import { MESSAGE_TABLE, type Message, MessageType } from '@postgrad/wire/internal'
import { currentRuntime } from '../api/api.js'
import type { RequestingPeer, Want } from '../common/authority.js'
import type { ContextHead } from '../core/hooks.js'
import type { Peer } from '../core/peer.js'
import type { WorkerCore } from '../core/worker-core.js'
import { meet } from '../groups/meet.js'
import { call, expose, link, monitor, type RRef, registerActor, remote, rref, stopActor, storeOn, stream, whereis } from '../index.js'
import { UserRRef } from '../references/rref.js'
import { Cluster, failure, thrown } from '../worker/sim-cluster.suite.js'
import type { WorkerRuntime } from '../worker/worker-runtime.js'
import { AuthorityCheck } from './authority-check.js'
import { type RoleRights, rolePolicy } from './role-policy.js'

/** All that has run, by name. */
let ran: string[] = []
const note = <T>(name: string, value: T): T => {
  ran.push(name)
  return value
}
class Agent {
  report(): string {
    return note('Agent.report', 'well')
  }
  step(): number {
    return note('Agent.step', 1)
  }
  *reports(): Generator<number> {
    yield note('Agent.reports', 1)
  }
}
class Careful extends Agent {}
const selectAction = (x: number): number => note('selectAction', x + 1)
const step = (x: number): number => note('step', x)
const count = function* (n: number): Generator<number> {
  for (let i = 0; i < n; i++) yield note('count', i)
}
const lateAgent = (): Promise<Agent> =>
  new Promise((resolve) => currentRuntime().clock.setTimer(50, () => resolve(note('lateAgent', new Agent()))))
const take = (_value: unknown): string => note('take', 'taken')
const give = (): RRef<Agent> => rref(note('give', new Agent()))
/** Of a reference to a value elsewhere. */
const passOn = (ref: RRef<Agent>): RRef<Agent> => note('passOn', ref)
const ownStep = (): Promise<number> => call('worker1', step, [3])
expose({
  'aut.Agent': Agent,
  'aut.Careful': Careful,
  'aut.selectAction': selectAction,
  'aut.step': step,
  'aut.count': count,
  'aut.lateAgent': lateAgent,
  'aut.take': take,
  'aut.give': give,
  'aut.passOn': passOn,
  'aut.ownStep': ownStep,
})

const OBSERVER = 2
const RIGHTS: RoleRights = { call: ['aut.selectAction', 'aut.give', 'aut.passOn', 'aut.take', 'aut.Agent.report'] }

/** Workers 0 and 1 are members, 2 is an observer; all have the same policy. */
function clusterOf(seed: number, rights: RoleRights = RIGHTS): Cluster {
  ran = []
  const cluster = new Cluster(seed, 3, { authority: rolePolicy({ observer: rights }) })
  for (const worker of cluster.workers) if (worker.info.id !== OBSERVER) worker.setPeerRole(OBSERVER, 'observer')
  return cluster
}

/** Runs it as the observer, over some seeds; so many dead letters are to be left, or any number (null), and nothing else. */
async function asObserver(
  body: (cluster: Cluster) => Promise<void>,
  rights: RoleRights = RIGHTS,
  letters: number | null = null,
): Promise<void> {
  for (let seed = 1; seed <= 3; seed++) {
    const cluster = clusterOf(seed, rights)
    await cluster.run(OBSERVER, () => body(cluster))
    expect({ seed, left: await cluster.leftovers({ letters }) }).toEqual({ seed, left: [] })
  }
}

const refused = async (promise: PromiseLike<unknown>): Promise<string> => {
  const { code, message } = await failure(promise)
  return code === 'NOT_PERMITTED' ? message : code
}
const lettersOf = (worker: WorkerRuntime | undefined) => worker!.letters.last().map(({ reason, what }) => `${reason} ${what}`)

describe('AUT-1 a role that is named may do what is listed', () => {
  test('AUT-1 an observer calls selectAction, and not step', () =>
    asObserver(async ({ workers }) => {
      expect(await call('worker0', selectAction, [1])).toBe(2)
      const error = await failure(call('worker0', step, [1]))
      expect(error.message).toBe(
        "call: worker 'worker2', whose role is 'observer', may not call 'aut.step' on worker 'worker0'. " +
          'Allow it for that role in the `rights` of the worker that refused, or use credentials of another role; nothing was run.',
      )
      expect(error.values).toEqual({ caller: 'worker2', role: 'observer', kind: 'call', name: 'aut.step', worker: 'worker0' })
      expect(ran).toEqual(['selectAction'])
      ran = []
      expect(lettersOf(workers[0])).toEqual(["invalid CALL aut.step: not permitted to the role 'observer'"])
    }))

  test('AUT-1 a role that is not named may do everything, as may who has none', async () => {
    const cluster = clusterOf(1)
    cluster.workers[0]!.setPeerRole(1, 'admin')
    expect(await cluster.run(1, async () => call('worker0', step, [4]))).toBe(4)
    expect(await cluster.run(0, async () => call('worker1', step, [5]))).toBe(5)
    // Its own calls are nobody's business.
    expect(await cluster.run(OBSERVER, async () => call('worker2', step, [6]))).toBe(6)
    expect(await cluster.leftovers()).toEqual([])
  })

  test('AUT-1 what exists, and what does not, is refused in the same words', () =>
    asObserver(async () => {
      const { caller } = currentRuntime()
      const words = async (name: string) => (await refused(caller.call(0, name, []))).replaceAll(name, 'x')
      expect(await words('aut.step')).toBe(await words('aut.missing'))
      expect(await words('constructor')).toBe(await words('aut.missing'))
    }))

  test('AUT-2 a member has a call run for it where it may not call itself', async () => {
    // The observer may call what calls step: a function that is listed acts for the member that runs it.
    await asObserver(async () => expect(await call('worker0', ownStep, [])).toBe(3), { call: ['aut.ownStep'] })
  })
})

const sleep = (ms: number) => new Promise<void>((resolve) => currentRuntime().clock.setTimer(ms, resolve))
const takeAll = async (items: AsyncIterable<unknown>): Promise<void> => {
  for await (const _ of items);
}
const madeThere = async (ref: RRef): Promise<void> => {
  try {
    await ref.created()
  } finally {
    ref.dispose()
  }
}
const watched = async (agent: RRef): Promise<void> => {
  const watch = monitor(agent)
  const down = await Promise.race([watch.down, sleep(20)])
  watch.dispose()
  if (down && !down.normal) throw down.reason
}

/** Each kind of request, the right that allows it (with those to get there), and what it runs. */
const REQUESTS: readonly [what: string, rights: RoleRights, runs: string, ask: (agent: RRef<Agent>) => PromiseLike<unknown>][] = [
  ['call', { call: ['aut.step'] }, 'step', () => call('worker0', step, [1])],
  ['stream', { call: ['aut.count'] }, 'count', () => takeAll(stream('worker0', count, [1]))],
  ['remote', { remote: ['aut.Agent'] }, '', () => madeThere(remote('worker0', Agent, []))],
  ['remote of a function', { remote: ['aut.step'] }, 'step', () => madeThere(remote('worker0', step, [1]))],
  ['method', { call: ['aut.Agent.step'] }, 'Agent.step', (agent) => agent.call('step', [])],
  ['stream of a method', { call: ['aut.Agent.reports'] }, 'Agent.reports', (agent) => takeAll(agent.stream('reports', []))],
  ['remote of a method', { remote: ['aut.Agent.step'] }, 'Agent.step', (agent) => madeThere(agent.remote().step())],
  ['whereis', { whereis: true }, '', async () => (await whereis('worker0', 'agent')).dispose()],
  ['watch', { watch: true }, '', (agent) => watched(agent)],
  ['stop', { stop: true }, '', (agent) => stopActor(agent)],
  ['link', { stop: true }, '', (agent) => link(agent, agent)],
  ['store', { stores: true }, '', () => storeOn('worker0').numKeys()],
  ['another built-in', { call: ['postgrad.other'] }, 'other', () => currentRuntime().caller.call(0, 'postgrad.other', [])],
  ['fetch', { fetch: true, call: ['aut.give'] }, '', (agent) => agent.created()],
]
expose({ 'postgrad.other': () => note('other', 1) })

describe('AUT-3 every kind of request', () => {
  const needs = (what: string): RoleRights => ({ call: ['aut.give'], ...(what === 'fetch' ? {} : { fetch: true }) })
  const names = (agent: RRef<Agent>) => registerActor('agent', agent)
  let registered: RRef<Agent>

  /** An agent of worker0 that the observer has a reference to. */
  async function withAgent({ workers }: Cluster, body: (agent: RRef<Agent>) => Promise<void>): Promise<void> {
    await workers[0]!.run(async () => {
      registered = rref(new Agent())
      names(registered)
    })
    using agent = await call('worker0', give, [])
    ran = []
    await body(agent)
  }

  test.each(REQUESTS)('AUT-3 %s is refused unless it is listed, and nothing runs', (what, _rights, _runs, ask) =>
    asObserver(async (cluster) => {
      await withAgent(cluster, async (agent) => expect(await refused(ask(agent))).toMatch(/may not .* on worker 'worker0'/))
      await sleep(100)
      expect(ran).toEqual([])
      const letters = lettersOf(cluster.workers[0]).filter((letter) => letter.startsWith('invalid '))
      expect(letters.length).toBeGreaterThan(0)
      for (const letter of letters) expect(letter).toMatch(/not permitted to the role 'observer'$/)
    }, needs(what)),
  )

  test.each(REQUESTS)('AUT-3 %s is done where it is listed', (what, rights, runs, ask) =>
    asObserver(
      async (cluster) => {
        await withAgent(cluster, async (agent) => void (await ask(agent)))
        expect(ran).toEqual(runs === '' ? [] : [runs])
        expect(lettersOf(cluster.workers[0])).toEqual([])
      },
      { ...needs(what), ...rights, call: [...(needs(what).call ?? []), ...(rights.call ?? [])] },
      0,
    ),
  )

  test('AUT-3 a meeting needs groups', () =>
    asObserver(async () => {
      const options = { timeoutMs: 200 }
      expect(await refused(meet(2, ['worker0', 'worker2'], options))).toMatch(/may not use 'postgrad.arrive'/)
    }))

  test('AUT-3 with groups they meet', () =>
    asObserver(
      async ({ workers }) => {
        const other = workers[0]!.run(() => meet(0, ['worker0', 'worker2']))
        expect([...(await meet(2, ['worker0', 'worker2']))]).toEqual([
          ['worker0', 0],
          ['worker2', 2],
        ])
        await other
      },
      { groups: true },
      0,
    ))

  test('AUT-3 a method of a value that is not there yet is asked for when its class is known', () =>
    asObserver(
      async () => {
        using late = remote('worker0', lateAgent, [])
        expect(await late.call('report', [])).toBe('well')
        expect(await refused(late.call('step', []))).toMatch(/may not call 'aut.Agent.step'/)
        // A class that is exposed itself goes by its own name, whatever it extends.
        using careful = remote('worker0', Careful, [])
        expect(await refused(careful.call('report', []))).toMatch(/may not call 'aut.Careful.report'/)
        expect(await refused(careful.call('toString' as 'report', []))).toMatch(/may not call 'aut.Careful.toString'/)
        expect(ran).toEqual(['lateAgent', 'Agent.report'])
      },
      { call: ['aut.Agent.report'], remote: ['aut.lateAgent', 'aut.Careful'] },
    ))
})

describe('SHD-9 shutdown of a worker whose role may not take part', () => {
  test.each([
    ['the last worker', 2],
    // The others report to it, and it asks them to end.
    ['the worker with the smallest name, which leads', 0],
  ])('SHD-9 %s leaves and learns why, and the others end', async (_what, restricted) => {
    for (let seed = 1; seed <= 3; seed++) {
      const cluster = new Cluster(seed, 3, { authority: rolePolicy({ observer: RIGHTS }) })
      for (const worker of cluster.workers) if (worker.info.id !== restricted) worker.setPeerRole(restricted, 'observer')
      const shutDown = (worker: WorkerRuntime) =>
        worker.shutdown().then(
          () => 'ended',
          (error: unknown) => error,
        )
      const ends = await cluster.world.run(Promise.all(cluster.workers.map(shutDown)))
      expect(ends.filter((end) => end === 'ended')).toHaveLength(2)
      expect(ends[restricted]).toMatchObject({
        code: 'NOT_PERMITTED',
        message: expect.stringMatching(
          /^shutdown: worker 'worker\d', whose role is 'observer', may not end together with worker 'worker\d'. Call leave\(\) instead/,
        ),
      })
    }
  })
})

describe('AUT-4 references', () => {
  test('AUT-4 what was not given to it is not used: by its id, in a message, in a fetch', () =>
    asObserver(
      async ({ workers }) => {
        const agent = await workers[1]!.run(() => call('worker0', give, []))
        ran = []
        const { caller, requests, peers } = currentRuntime()
        expect(await refused(caller.call(0, 'postgrad.callMethod', [agent.rrefId, 'report', []]))).toMatch(/may not use a reference/)
        expect(
          await refused(requests.ask(peers.resolve(0), 5 as MessageType, [agent.rrefId], 'toHere', {}, (message: Message) => message)),
        ).toMatch(/may not fetch/)
        // Asked for with a fork of its own, as if another had handed it on.
        expect(
          await refused(
            requests.ask(peers.resolve(0), 7 as MessageType, [agent.rrefId, 77n], 'sharing', {}, (message: Message) => message),
          ),
        ).toMatch(/may not use a reference/)
        expect(await refused(caller.call(0, 'postgrad.callMethod', [agent.rrefId, 'report', []]))).toMatch(/may not use a reference/)
        expect(ran).toEqual([])
        await workers[1]!.run(async () => {
          expect(await agent.call('report', [])).toBe('well')
          agent.dispose()
        })
      },
      { ...RIGHTS, fetch: true },
    ))

  test('AUT-4 a reference that it makes up, in a call that it may make, is refused, and its owner is not asked', () =>
    asObserver(async (cluster) => {
      const agent = await cluster.workers[1]!.run(() => call('worker0', give, []))
      ran = []
      const { rrefs, ids } = currentRuntime()
      const madeUp = () => new UserRRef<Agent>(agent.rrefId, ids.take(), { name: 'worker0', id: 0 }, rrefs.operations, true)
      for (const to of ['worker0', 'worker1']) {
        const ref = madeUp()
        expect(await refused(call(to, take, [ref]))).toMatch(/may not use a reference/)
        ref.dispose()
      }
      expect(ran).toEqual([])
      expect(cluster.gate(1, 0).sent).not.toContain('RREF_FORK_REQUEST')
      await cluster.workers[1]!.run(async () => agent.dispose())
    }))

  test('AUT-4 an id that nobody has made leaves nothing behind', () =>
    asObserver(async ({ workers }) => {
      const before = workers[0]!.debugInfo()
      const { caller } = currentRuntime()
      for (let n = 900n; n < 950n; n++) {
        await refused(caller.call(0, 'postgrad.callMethod', [(1n << 48n) + n, 'report', []]))
      }
      expect(workers[0]!.debugInfo().ownerRRefs).toBe(before.ownerRRefs)
      expect(workers[0]!.debugInfo().servingCalls).toBe(0)
    }))

  test('AUT-4 a reference that another hands on is refused, with those in the message; nobody keeps anything', () =>
    asObserver(async ({ workers }) => {
      // worker1 has a reference to a value of worker0, and gives it to the observer.
      await workers[1]!.run(async () => {
        const agent = await call('worker0', give, [])
        await call('worker2', take, [agent]).then(undefined, ({ code }: { code: string }) => expect(code).toBe('NOT_PERMITTED'))
        agent.dispose()
      })
      expect(ran).toEqual(['give'])
    }))

  test('AUT-4 with references they are taken', () =>
    asObserver(
      async ({ workers }) => {
        await workers[1]!.run(async () => {
          const agent = await call('worker0', give, [])
          expect(await call('worker2', take, [agent])).toBe('taken')
          agent.dispose()
        })
        for (const tracked of [...workers[OBSERVER]!.rrefs.users.values()]) tracked.ref.deref()?.dispose()
      },
      { ...RIGHTS, references: true },
    ))

  test('AUT-4 its own values, and what it was given, it hands over and gives back', () =>
    asObserver(async ({ workers }) => {
      using agent = await call('worker0', give, [])
      const back = await call('worker0', passOn, [agent])
      expect(back.owner().name).toBe('worker0')
      back.dispose()
      const own = rref(new Agent())
      expect(await call('worker0', take, [own])).toBe('taken')
      expect(ran).toEqual(['give', 'passOn', 'take'])
      for (const tracked of [...workers[0]!.rrefs.users.values()]) tracked.ref.deref()?.dispose()
    }))

  test('AUT-4 references in a message that is refused are given back', () =>
    asObserver(async () => {
      const own = rref(new Agent())
      using given = await call('worker0', give, [])
      expect(await refused(call('worker0', step, [own as never]))).toMatch(/may not call 'aut.step'/)
      expect(await refused(call('worker0', step, [given as never]))).toMatch(/may not call 'aut.step'/)
    }))
})

describe('AUT-5 one-way messages', () => {
  test('AUT-5 the end of the group is not its to say; that it leaves is', () =>
    asObserver(async ({ workers }) => {
      const observer = workers[OBSERVER]!
      const GROUP_UPDATE = 15 as MessageType
      for (const [what, data, error] of [
        [2, [0], null],
        [3, [0, []], null],
        [4, [0, 1, 2], null],
        [5, null, null],
        [6, null, new Error('forged')],
        [7, [1, []], null],
        [8, [1, null], null],
        [9, ['g', 1], null],
      ] as const) {
        observer.post(0, GROUP_UPDATE, [what, data, error])
      }
      expect(await call('worker0', selectAction, [1])).toBe(2)
      expect(lettersOf(workers[0])).toEqual(Array.from({ length: 8 }, () => "invalid GROUP_UPDATE: not permitted to the role 'observer'"))
      await observer.leave({ timeoutMs: 1000 })
      expect(workers[0]!.isClosed).toBe(false)
    }))

  test('AUT-5 words about passes and contexts are refused, also of a pass that its sender is the root of', () =>
    asObserver(async ({ workers }) => {
      const own = { context: (2n << 48n) + 1n, autogradId: (2n << 48n) + 2n, pass: (2n << 48n) + 3n }
      const others = { context: (1n << 48n) + 1n, autogradId: 2n, pass: (1n << 48n) + 3n }
      const kinds: readonly [MessageType, readonly unknown[]][] = [
        [0x10, [[], 0]],
        [0x11, [1, 0, [], 0, []]],
        [0x12, [new Error('forged')]],
        [0x13, [new Error('forged')]],
        [0x14, []],
        [0x15, []],
        [0x16, []],
      ]
      for (const ids of [own, others]) for (const [type, body] of kinds) workers[OBSERVER]!.post(0, type, body, { ...ids, lineage: [1, 2] })
      expect(await call('worker0', selectAction, [1])).toBe(2)
      const letters = lettersOf(workers[0])
      expect(letters).toHaveLength(14)
      for (const letter of letters) expect(letter).toMatch(/^invalid (PROPAGATE_GRADIENTS|PASS_\w+|CLEANUP_CONTEXT|LINEAGE): not permitted/)
    }))

  test('AUT-5 lineage of a call that is refused is not noted', async () => {
    const cluster = clusterOf(1)
    const arrived: (bigint | null)[] = []
    cluster.workers[0]!.intercept({ arrived: ({ context }) => arrived.push(context) })
    const send = (from: WorkerRuntime) => {
      const peer = from.peers.resolve(0)
      const out = from.messages.prepare(peer, 0 as MessageType, ['aut.selectAction', [1]], 'forged')
      from.messages.send(peer, Object.assign(out, { requestId: 9000, context: 5n, autogradId: 6n, lineage: [1, 2] }))
    }
    send(cluster.workers[OBSERVER]!)
    await cluster.world.drain()
    expect(arrived).toEqual([])
    expect(ran).toEqual([])
    send(cluster.workers[1]!)
    await cluster.world.drain()
    expect(arrived).toEqual([5n])
    expect(ran).toEqual(['selectAction'])
  })
})

describe('AUT-6 who decides', () => {
  const asked: { caller: RequestingPeer; want: Want }[] = []

  test('AUT-6 an authority hears who wants what, and its throw means no', async () => {
    asked.length = 0
    let isBroken = false
    const authority = {
      permits(caller: RequestingPeer, want: Want): boolean {
        asked.push({ caller, want })
        if (isBroken) throw new Error('broken')
        return true
      },
    }
    const bugs: unknown[] = []
    const cluster = new Cluster(1, 2, { authority, onBug: (error) => bugs.push(error) })
    cluster.workers[1]!.setPeerRole(0, 'guest')
    expect(cluster.workers[1]!.peerRole(0)).toBe('guest')
    await cluster.run(0, async () => {
      using agent = await call('worker1', give, [])
      await agent.call('report', [])
      isBroken = true
      expect(await refused(call('worker1', step, [1]))).toMatch(/may not call 'aut.step'/)
      isBroken = false
    })
    const info = { name: 'worker0', id: 0 }
    expect(asked.filter(({ caller }) => caller.role === 'guest')).toEqual(
      [
        { kind: 'call', name: 'aut.give', isOwn: true },
        { kind: 'method', name: 'aut.Agent.report', isOwn: true },
        { kind: 'call', name: 'aut.step', isOwn: true },
      ].map((want) => ({ caller: { info, role: 'guest' }, want })),
    )
    expect(bugs).toEqual([new Error('broken')])
  })

  test('AUT-6 anything but true is no', async () => {
    const cluster = new Cluster(1, 2, { authority: { permits: () => 'yes' as unknown as boolean } })
    await cluster.run(0, async () => expect(await refused(call('worker1', step, [1]))).toMatch(/may not call/))
  })

  test('AUT-6 a worker without an authority asks nobody', async () => {
    const cluster = new Cluster(1, 2)
    expect(cluster.workers[0]!.messages.gate).toBe(null)
    cluster.workers[1]!.setPeerRole(0, 'observer')
    expect(await cluster.run(0, async () => call('worker1', step, [1]))).toBe(1)
  })
})

test.each<[string, unknown]>([
  ['an unknown right', { observer: { everything: true } }],
  ['names that are no array', { observer: { call: 'aut.step' } }],
  ['a name that is none', { observer: { remote: [step] } }],
  ['a switch that is none', { observer: { fetch: 'yes' } }],
])('AUT-7 a policy with %s is refused', (_, roles) => {
  expect(thrown(() => rolePolicy(roles as never)).code).toBe('INVALID_ARGUMENT')
})

test('AUT-7 roles and built-in names that every object has are none', async () => {
  const policy = rolePolicy({ observer: {} })
  const info = { name: 'a', id: 1 }
  expect(policy.permits({ info, role: 'toString' }, { kind: 'call', name: 'x', isOwn: true })).toBe(true)
  for (const name of ['toString', 'constructor', '__proto__']) {
    expect(policy.permits({ info, role: 'observer' }, { kind: 'built-in', name, isOwn: true })).toBe(false)
  }
})

test('AUT-5 for a message that is dropped, and not answered, no error is made', () => {
  let made = 0
  const info = {
    id: 5,
    get name() {
      made++
      return 'eye'
    },
  }
  const core = { info: { name: 'worker0', id: 0 }, takesPart: () => false, onBug: () => {} } as unknown as WorkerCore
  const check = new AuthorityCheck(core, { permits: () => false })
  const message = { type: MessageType.LINEAGE, context: 1n, autogradId: null, pass: null } as unknown as ContextHead
  expect(check.mayBring(message, { link: {}, info, role: 'observer' } as unknown as Peer)).toBe(false)
  expect(made).toBe(0)
})

test('AUT-3 RPC-55 a name that is no text is refused as any other that is not listed, and no check throws', () =>
  asObserver(async ({ bugs }) => {
    const { caller } = currentRuntime()
    for (const odd of [{ toString: 1 }, { toString: null }, [[]]]) {
      for (const args of [
        ['postgrad.stream', [odd, [], 1]],
        ['postgrad.stream', [[odd, []], [], 1]],
        ['postgrad.callMethod', [5n, odd, []]],
      ] as const) {
        expect(await failure(caller.call('worker0', args[0], args[1]))).toMatchObject({ code: 'NOT_PERMITTED' })
      }
    }
    expect(bugs).toEqual([])
  }))

describe('AUT-8 forged messages', () => {
  /** `npm run soak -- --seeds 10000 authority/authority` takes more. */
  const SEEDS = Number(process.env.POSTGRAD_SOAK_SEEDS ?? 15)

  test('AUT-8 of every kind with every field wrong: nothing runs, nothing stays, and the member goes on', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const cluster = clusterOf(seed, {})
      const random = new Random(seed)
      const [member, , observer] = cluster.workers as [WorkerRuntime, WorkerRuntime, WorkerRuntime]
      const agent = await cluster.run(1, async () => call('worker0', give, []))
      ran = []
      const pick = <T>(list: readonly T[]): T => list[random.below(list.length)] as T
      const values = (): unknown =>
        pick<() => unknown>([
          () => 0,
          () => random.below(20),
          () => 2 ** 48,
          () => -1,
          () => null,
          () => true,
          () => 'aut.step',
          () => 'aut.Agent',
          () =>
            pick([
              'postgrad.callMethod',
              'postgrad.stream',
              'postgrad.created',
              'postgrad.stopActor',
              'postgrad.arrive',
              'postgrad.store',
              'postgrad.whereis',
            ]),
          () => agent.rrefId,
          () => (BigInt(pick([0, 1, 2, 9])) << 48n) | BigInt(random.below(50)),
          () => [],
          () => ['aut.step', [1], 4],
          () => [agent.rrefId, 'step', []],
          () => ['postgrad.callMethod', [agent.rrefId, 'step', []], 4],
          () => new Error('forged'),
        ])()
      const kinds = Object.entries(MESSAGE_TABLE)
      let sent = 0
      for (let i = 0; i < 400; i++) {
        const [type, { fields }] = pick(kinds)
        const body = fields.map(([, { check }]) => {
          for (let tries = 0; tries < 30; tries++) {
            const value = values()
            if (check(value)) return value
          }
          return values()
        })
        try {
          const peer = observer.peers.resolve(0)
          const out = observer.messages.prepare(peer, Number(type) as MessageType, body, 'forged')
          const id = () => (random.coin() ? null : (BigInt(pick([0, 1, 2])) << 48n) | BigInt(random.below(9)))
          Object.assign(out, {
            requestId: random.below(500) + 1,
            context: id(),
            autogradId: id(),
            pass: id(),
            lineage: random.coin() ? null : [1, 2],
          })
          observer.messages.send(peer, out)
          sent++
        } catch (error) {
          if (!isPostgradError(error)) throw error
        }
      }
      expect(sent).toBeGreaterThan(100)
      await cluster.world.drain()
      expect({ seed, ran }).toEqual({ seed, ran: [] })
      expect({ seed, value: await cluster.run(1, async () => call('worker0', step, [seed])) }).toEqual({ seed, value: seed })
      expect({ seed, report: await cluster.run(1, async () => agent.call('report', [])) }).toEqual({ seed, report: 'well' })
      const { ownerRRefs, servingCalls } = member.debugInfo()
      expect({ seed, ownerRRefs, servingCalls, bugs: cluster.bugs }).toEqual({ seed, ownerRRefs: 1, servingCalls: 0, bugs: [] })
      agent.dispose()
    }
  })
})
