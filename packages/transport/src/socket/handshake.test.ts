/** Two ends of a handshake in one thread, and an attacker between them. */
import { createHmac, randomBytes } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { isPostgradError, type PostgradError } from '@postgrad/base'
import fc from 'fast-check'
import type { Credentials, Identity, KeyCredentials } from './credentials.js'
import { Handshake, type HandshakeOptions, type HandshakeStep, RELEASE } from './handshake.js'
import { encodeMessage, HANDSHAKE_BYTES_MAX } from './handshake-messages.js'

const A: Identity = { cluster: 'train', name: 'worker1', id: 1, role: 'member' }
const B: Identity = { cluster: 'train', name: 'worker2', id: 2, role: 'member' }
const OBSERVER: Identity = { cluster: 'train', name: 'watch', id: 3, role: 'observer' }

const MEMBER_KEY = new Uint8Array(32).fill(11)
const OBSERVER_KEY = new Uint8Array(40).fill(12)
const keysOf = (role: string, keys: Record<string, Uint8Array>): KeyCredentials => ({ kind: 'key', role, keys })
const MEMBER = keysOf('member', { member: MEMBER_KEY, observer: OBSERVER_KEY })
const ONLY_OBSERVER = keysOf('observer', { observer: OBSERVER_KEY })
const PEM = '-----BEGIN CERTIFICATE-----'
const TLS: Credentials = { kind: 'tls', ca: PEM, cert: PEM, key: PEM }

type Changes = Partial<HandshakeOptions>
const dialler = (changes: Changes = {}) =>
  new Handshake({ side: 'dialler', self: A, credentials: MEMBER, random: randomBytes, wants: { name: B.name, id: B.id }, ...changes })
const listener = (changes: Changes = {}) =>
  new Handshake({ side: 'listener', self: B, credentials: MEMBER, random: randomBytes, ...changes })

interface Outcome {
  readonly messages: Uint8Array[]
  /** The result of each end. */
  readonly dialler: HandshakeStep['done'] | PostgradError | null
  readonly listener: HandshakeStep['done'] | PostgradError | null
}

const isError = (value: unknown): value is PostgradError => isPostgradError(value)
const codes = ({ dialler, listener }: Outcome) =>
  [dialler, listener].map((end) => (isError(end) ? end.code : end === null ? 'waits' : 'done'))

/** Runs both ends until neither has anything to say. `between` is an attacker on the wire: message number i, from 0. */
function meet(d: Handshake, l: Handshake, between: (bytes: Uint8Array, i: number) => Uint8Array | null = (bytes) => bytes): Outcome {
  const ends = { dialler: null, listener: null } as { -readonly [E in 'dialler' | 'listener']: Outcome[E] }
  const messages: Uint8Array[] = []
  let next: Uint8Array | null = d.begin()
  for (let i = 0; next !== null && i < 8; i++) {
    messages.push(next.slice())
    const [end, side] = i % 2 === 0 ? ([l, 'listener'] as const) : ([d, 'dialler'] as const)
    const arrived = between(next, i)
    // An end that is done takes no more messages of the handshake.
    if (arrived === null || ends[side] !== null) break
    try {
      const { send, done } = end.receive(arrived)
      ends[side] = done
      next = send
    } catch (error) {
      if (!isError(error)) throw error
      ends[side] = error
      next = Handshake.refusal(error)
    }
  }
  return { messages, ...ends }
}

const flipped = (bytes: Uint8Array, bit: number): Uint8Array => {
  const other = bytes.slice()
  other[bit >> 3] = (other[bit >> 3] as number) ^ (1 << (bit & 7))
  return other
}

const jsonOf = (bytes: Uint8Array): Record<string, unknown> => JSON.parse(new TextDecoder().decode(bytes.subarray(8)))
const withJson = (bytes: Uint8Array, text: string): Uint8Array =>
  Uint8Array.from([...bytes.subarray(0, 8), ...new TextEncoder().encode(text)])

describe('HSK-1 two ends of one cluster meet', () => {
  const tlsPeer = (name: string, role = 'member') => ({ cluster: 'train', name, role, id: null })
  test.each<[string, Changes, Changes]>([
    ['by a key', {}, {}],
    ['without credentials', { credentials: null }, { credentials: null }],
    ['by TLS', { credentials: TLS, tlsPeer: tlsPeer('worker2') }, { credentials: TLS, tlsPeer: tlsPeer('worker1') }],
    ['whoever is there', { wants: null }, {}],
    ['of one release', { release: '1.2.3-rc.1+x' }, { release: '1.2.3-rc.1+x' }],
  ])('HSK-1 %s', (_, ofDialler, ofListener) => {
    const outcome = meet(dialler(ofDialler), listener(ofListener))
    expect(outcome.dialler).toEqual({ peer: B, purpose: 'session' })
    expect(outcome.listener).toEqual({ peer: A, purpose: 'session' })
    expect(outcome.messages).toHaveLength(4)
  })

  test('HSK-1 for another purpose, where an id may be one’s own', () => {
    const outcome = meet(dialler({ purpose: 'store', wants: null, self: B }), listener())
    expect([outcome.dialler, outcome.listener]).toEqual([
      { peer: B, purpose: 'store' },
      { peer: B, purpose: 'store' },
    ])
  })

  test('HSK-1 the dialler proves itself first: a listener that hears no proof has said none', () => {
    const { messages } = meet(dialler(), listener(), (bytes, i) => (i < 2 ? bytes : null))
    expect(jsonOf(messages[1] as Uint8Array)).not.toHaveProperty('proof')
  })
})

describe('HSK-2 nobody changes a bit', () => {
  test.each<[string, Credentials | null]>([
    ['by a key', MEMBER],
    ['without keys', null],
  ])('HSK-2 %s: every flip of every bit of every message is an error at one end or the other', (_, credentials) => {
    const whole = meet(dialler({ credentials }), listener({ credentials }))
    let tried = 0
    for (const [i, message] of whole.messages.entries()) {
      for (let bit = 0; bit < message.length * 8; bit++) {
        const outcome = meet(dialler({ credentials }), listener({ credentials }), (bytes, at) => (at === i ? flipped(bytes, bit) : bytes))
        const good = [outcome.dialler, outcome.listener].filter((end) => end !== null && !isError(end))
        const bad = [outcome.dialler, outcome.listener].filter(isError)
        // Only the last message is changed after the listener has ended well; the dialler has not by then.
        expect({ i, bit, good: good.length, bad: bad.length > 0 }).toEqual({ i, bit, good: i === 3 ? 1 : 0, bad: true })
        tried++
      }
    }
    expect(tried).toBe(whole.messages.reduce((sum, { length }) => sum + 8 * length, 0))
  })

  test('HSK-2 any other text of a message’s fields, however well formed, is found out', () => {
    const swaps: [number, string, string][] = [
      [0, '"worker1"', '"worker9"'],
      [0, '"id":1', '"id":9'],
      [0, '"role":"member"', '"role":"observer"'],
      [0, '"session"', '"control"'],
      [0, '"wants":"worker2#2"', '"wants":""'],
      [1, '"name":"worker2"', '"name":"worker3"'],
      [1, '"role":"member"', '"role":"observer"'],
      [1, '"knows":true', '"knows":false'],
      [2, '"knows":true', '"knows":false'],
    ]
    for (const [i, from, to] of swaps) {
      const outcome = meet(dialler({ wants: null }), listener(), (bytes, at) => {
        if (at !== i) return bytes
        const text = new TextDecoder().decode(bytes.subarray(8))
        if (from !== '"wants":"worker2#2"') expect(text).toContain(from)
        return withJson(bytes, text.replace(from, to).replace('"wants":""', '"wants":"worker2#2"'))
      })
      expect({ i, to, codes: codes(outcome) }).toEqual({ i, to, codes: ['AUTH_FAILED', 'AUTH_FAILED'] })
    }
  })
})

test.each<[string, string, Uint8Array[], KeyCredentials, KeyCredentials]>([
  ['one key', 'member', [MEMBER_KEY], MEMBER, MEMBER],
  ['both keys', 'observer', [OBSERVER_KEY, MEMBER_KEY], keysOf('observer', { member: MEMBER_KEY, observer: OBSERVER_KEY }), MEMBER],
])('HSK-2 a proof is the HMAC of the side and of all messages before it, under %s', (_, role, keys, ofDialler, ofListener) => {
  const { messages } = meet(dialler({ self: { ...A, role }, credentials: ofDialler }), listener({ credentials: ofListener }))
  const expected = (side: string, before: readonly Uint8Array[]) => {
    const parts = before.flatMap((message) => [Buffer.from([0, 0, message.length >> 8, message.length & 255]), message])
    const text = Buffer.concat([Buffer.from(`postgrad handshake ${side} true\0`), ...parts])
    return keys.reduce<Uint8Array>((value, key) => createHmac('sha256', key).update(value).digest(), text)
  }
  const said = (i: number) => jsonOf(messages[i] as Uint8Array).proof
  expect(said(2)).toBe(Buffer.from(expected('dialler', messages.slice(0, 2))).toString('base64'))
  expect(said(3)).toBe(Buffer.from(expected('listener', messages.slice(0, 3))).toString('base64'))
})

describe('HSK-3 a wrong key', () => {
  const wrong = keysOf('member', { member: new Uint8Array(32).fill(99) })

  test('HSK-3 is AUTH_FAILED at both ends, each in one line that says what to do', () => {
    const outcome = meet(dialler({ credentials: wrong }), listener())
    expect(codes(outcome)).toEqual(['AUTH_FAILED', 'AUTH_FAILED'])
    expect((outcome.dialler as PostgradError).message).toBe(
      'connect: the other end refused: the proof that it received was not made with its key. Give both ends the same key file. If they have it, the connection may have been tampered with.',
    )
    expect((outcome.listener as PostgradError).message).toBe(
      "accept: expected the proof of 'worker1' as 'member', got another. Give both ends the same key file. If they have it, the connection may have been tampered with.",
    )
  })

  test('HSK-3 of a listener: the dialler finds it out', () => {
    // A listener that takes any proof: it welcomes without a look.
    const d = dialler()
    const hello = d.begin() as Uint8Array
    const challenge = listener({ credentials: wrong }).receive(hello).send as Uint8Array
    const proof = d.receive(challenge).send as Uint8Array
    expect(proof).not.toBeNull()
    expect(() => d.receive(encodeMessage('WELCOME', { proof: randomBytes(32).toString('base64') }))).toThrow(
      /expected the proof of 'worker2'/,
    )
  })

  test('HSK-3 no key crosses the wire, in any form', () => {
    const { messages } = meet(dialler(), listener())
    const wire = Buffer.concat(messages)
    for (const key of [MEMBER_KEY, OBSERVER_KEY]) {
      expect(wire.includes(Buffer.from(key))).toBe(false)
      for (const form of ['base64', 'hex', 'base64url'] as const)
        expect(wire.includes(Buffer.from(key).toString(form).slice(0, 16))).toBe(false)
    }
  })

  test('HSK-3 whoever has no key and says that nobody has one is not let in', () => {
    const l = listener()
    const hello = {
      ...A,
      nonce: Buffer.alloc(32).toString('base64'),
      release: RELEASE,
      purpose: 'session',
      wants: '',
      way: '',
      how: 'key' as const,
    }
    l.receive(encodeMessage('HELLO', { ...hello, role: 'nobody' }))
    // The plain hash would be the proof of an end without keys.
    expect(() => l.receive(encodeMessage('PROOF', { knows: false, proof: Buffer.alloc(32).toString('base64') }))).toThrow(
      /a key that both ends have/,
    )

    const d = dialler({ wants: null })
    d.begin()
    const challenge = { name: 'x', id: 9, role: 'nobody', way: '', how: 'key' as const, knows: false, nonce: hello.nonce }
    expect(() => d.receive(encodeMessage('CHALLENGE', challenge))).toThrow(/a key that both ends have/)
  })
})

describe('HSK-12 whether the bytes stay on this machine', () => {
  const WAY = '127.0.0.1:40001>127.0.0.1:5000'
  const meets = (ofDialler: string, ofListener: string) => {
    const [d, l] = [dialler({ way: ofDialler }), listener({ way: ofListener })]
    expect(codes(meet(d, l))).toEqual(['done', 'done'])
    return [d.isDirect, l.isDirect]
  }
  test('HSK-12 both ends see the same connection over loopback', () => {
    expect(meets(WAY, WAY)).toEqual([true, true])
  })

  test.each([
    ['somebody forwards it', WAY, '127.0.0.1:40002>127.0.0.1:5000'],
    ['one end sees no loopback', WAY, ''],
    ['neither does', '', ''],
  ])('HSK-12 not where %s', (_, one, other) => {
    expect(meets(one, other)).toEqual([false, false])
    expect(meets(other, one)).toEqual([false, false])
  })

  test('HSK-12 whoever forwards it cannot say that it does not: what both see is under the proof', () => {
    const there = '127.0.0.1:40002>127.0.0.1:5000'
    const outcome = meet(dialler({ way: WAY }), listener({ way: there }), (bytes, i) =>
      i === 0 ? withJson(bytes, JSON.stringify({ ...jsonOf(bytes), way: there })) : bytes,
    )
    expect(codes(outcome)).toEqual(['AUTH_FAILED', 'AUTH_FAILED'])
  })
})

describe('HSK-4 what was said once does not pass again', () => {
  test('HSK-4 a recorded dialler', () => {
    const { messages, listener: ended } = meet(dialler(), listener())
    expect(isError(ended)).toBe(false)
    const l = listener()
    l.receive(messages[0] as Uint8Array)
    expect(() => l.receive(messages[2] as Uint8Array)).toThrow(/expected the proof/)
  })

  test('HSK-4 a recorded listener', () => {
    const { messages } = meet(dialler(), listener())
    const d = dialler()
    d.begin()
    d.receive(messages[1] as Uint8Array)
    expect(() => d.receive(messages[3] as Uint8Array)).toThrow(/expected the proof/)
  })

  test('HSK-4 a dialler that hears itself', () => {
    const d = dialler({ wants: null })
    const hello = d.begin() as Uint8Array
    expect(() => d.receive(hello)).toThrow(/expected CHALLENGE, got HELLO/)
    // With its own nonce and proof, as the other kind.
    const e = dialler({ wants: null })
    const { nonce } = jsonOf(e.begin() as Uint8Array) as { nonce: string }
    const step = e.receive(encodeMessage('CHALLENGE', { nonce, name: 'worker2', id: 2, role: 'member', way: '', how: 'key', knows: true }))
    const { proof } = jsonOf(step.send as Uint8Array) as { proof: string }
    expect(() => e.receive(encodeMessage('WELCOME', { proof }))).toThrow(/expected the proof/)
  })

  test('HSK-4 a worker that is asked to make the proof of another side', () => {
    // The attacker dials B as A, and has A, as a listener, say what A would say as a dialler.
    const atB = listener()
    const helloOfA = dialler().begin() as Uint8Array
    const challengeOfB = atB.receive(helloOfA).send as Uint8Array
    const { nonce } = jsonOf(challengeOfB) as { nonce: string }
    const atA = listener({ self: A })
    const hello = {
      cluster: 'train',
      name: 'worker2',
      id: 2,
      role: 'member',
      nonce,
      release: RELEASE,
      purpose: 'session',
      wants: '',
      way: '',
      how: 'key' as const,
    }
    const challengeOfA = atA.receive(encodeMessage('HELLO', hello)).send as Uint8Array
    // A listener proves nothing before it has received a proof, which the attacker lacks; A's CHALLENGE does not count as one.
    expect(() => atB.receive(challengeOfA)).toThrow(/expected PROOF/)
  })

  test('HSK-4 nonces are as many bytes as they should be, and asked for anew', () => {
    const asked: number[] = []
    const random = (bytes: number) => {
      asked.push(bytes)
      return randomBytes(bytes)
    }
    meet(dialler({ random }), listener({ random }))
    expect(asked).toEqual([32, 32])
    expect(() => dialler({ random: () => new Uint8Array(31) }).begin()).toThrow('as many random bytes')
  })
})

describe('HSK-5 roles have keys of their own', () => {
  test('HSK-5 an observer that has its own key alone meets a member, from either side', () => {
    const watch = { self: OBSERVER, credentials: ONLY_OBSERVER }
    expect(codes(meet(dialler({ ...watch, wants: null }), listener()))).toEqual(['done', 'done'])
    const other = meet(dialler({ wants: null }), listener(watch))
    expect([other.dialler, other.listener]).toEqual([
      { peer: OBSERVER, purpose: 'session' },
      { peer: A, purpose: 'session' },
    ])
  })

  test.each(['member', 'admin'])('HSK-5 an observer that says it is %s is refused by a member, from either side', (role) => {
    const guess = { member: new Uint8Array(32).fill(77), admin: new Uint8Array(32).fill(78) }
    const keys = keysOf(role, { [role]: guess[role as 'member'], observer: OBSERVER_KEY })
    const liar = { self: { ...OBSERVER, role }, credentials: keys }
    expect(codes(meet(dialler({ ...liar, wants: null }), listener()))).toEqual(['AUTH_FAILED', 'AUTH_FAILED'])
    expect(codes(meet(dialler({ wants: null }), listener(liar)))).toEqual(['AUTH_FAILED', 'AUTH_FAILED'])
  })

  test('HSK-5 where both have both keys, one of them is not enough', () => {
    // It has the observers' key, and a wrong one of the members, and says that it is an observer who knows both.
    const half = keysOf('observer', { observer: OBSERVER_KEY, member: new Uint8Array(32).fill(77) })
    expect(codes(meet(dialler({ self: OBSERVER, credentials: half, wants: null }), listener()))).toEqual(['AUTH_FAILED', 'AUTH_FAILED'])
    const whole = keysOf('observer', { observer: OBSERVER_KEY, member: MEMBER_KEY })
    expect(codes(meet(dialler({ self: OBSERVER, credentials: whole, wants: null }), listener()))).toEqual(['done', 'done'])
  })

  test('HSK-5 two ends without a key in common', () => {
    const other = keysOf('guest', { guest: new Uint8Array(32).fill(5) })
    const outcome = meet(dialler({ self: { ...A, role: 'guest' }, credentials: other }), listener())
    expect(codes(outcome)).toEqual(['AUTH_FAILED', 'AUTH_FAILED'])
    expect((outcome.dialler as PostgradError).message).toContain("a key that both ends have, of 'guest' or 'member'")
  })

  test('HSK-5 whatever keys two ends have, they meet if and only if one has the key of the other’s role, and all they share are the same', () => {
    const roles = ['member', 'observer', 'guest']
    const end = fc.record({
      role: fc.constantFrom(...roles),
      knows: fc.uniqueArray(fc.constantFrom(...roles)),
      wrong: fc.uniqueArray(fc.constantFrom(...roles)),
    })
    const make = ({ role, knows, wrong }: { role: string; knows: string[]; wrong: string[] }) => {
      const mine = [...new Set([role, ...knows])]
      return {
        has: mine,
        wrong,
        keys: keysOf(
          role,
          Object.fromEntries(mine.map((one) => [one, new Uint8Array(32).fill(roles.indexOf(one) + (wrong.includes(one) ? 50 : 1))])),
        ),
      }
    }
    fc.assert(
      fc.property(end, end, (ofDialler, ofListener) => {
        const [d, l] = [make(ofDialler), make(ofListener)]
        const used = [
          ...new Set([
            ...(l.has.includes(ofDialler.role) ? [ofDialler.role] : []),
            ...(d.has.includes(ofListener.role) ? [ofListener.role] : []),
          ]),
        ]
        const same = used.every((role) => d.wrong.includes(role) === l.wrong.includes(role))
        const outcome = meet(
          dialler({ self: { ...A, role: ofDialler.role }, credentials: d.keys }),
          listener({ self: { ...B, role: ofListener.role }, credentials: l.keys }),
        )
        expect(codes(outcome)).toEqual(used.length > 0 && same ? ['done', 'done'] : ['AUTH_FAILED', 'AUTH_FAILED'])
      }),
    )
  })
})

describe('HSK-6 a certificate', () => {
  const cert = (changes: object = {}) => ({ cluster: 'train', name: 'worker1', role: 'member', id: null, ...changes })
  const both = (atListener: HandshakeOptions['tlsPeer']) =>
    codes(meet(dialler({ credentials: TLS, tlsPeer: cert({ name: null }) }), listener({ credentials: TLS, tlsPeer: atListener as never })))

  test('HSK-6 says what is claimed', () => {
    expect(both(cert())).toEqual(['done', 'done'])
    expect(both(cert({ id: 1 }))).toEqual(['done', 'done'])
    for (const other of [cert({ name: 'worker3' }), cert({ cluster: 'x' }), cert({ role: 'observer' }), cert({ id: 2 }), null, undefined]) {
      expect(both(other as never)).toEqual(['AUTH_FAILED', 'AUTH_FAILED'])
    }
  })

  test('HSK-6 of the listener too', () => {
    for (const tlsPeer of [cert({ name: 'worker3' }), null]) {
      const outcome = meet(dialler({ credentials: TLS, tlsPeer }), listener({ credentials: TLS, tlsPeer: cert() }))
      expect(codes(outcome)).toEqual(['AUTH_FAILED', 'AUTH_FAILED'])
      expect((outcome.dialler as PostgradError).message).toContain('a certificate of worker2 as member')
    }
  })
})

describe('HSK-7, HSK-8 what does not fit is said at both ends', () => {
  test.each<[string, string, Changes, Changes]>([
    ['HSK-7 a key and nothing', 'AUTH_FAILED', {}, { credentials: null }],
    ['HSK-7 nothing and a key', 'AUTH_FAILED', { credentials: null }, {}],
    ['HSK-7 TLS and a key', 'AUTH_FAILED', { credentials: TLS }, {}],
    ['HSK-8 another cluster', 'CLUSTER_MISMATCH', { self: { ...A, cluster: 'other' } }, {}],
    ['HSK-8 another release', 'VERSION_MISMATCH', { release: '1.0.0' }, { release: '1.0.1' }],
    ['HSK-8 another worker by name', 'WRONG_PEER', { wants: { name: 'worker3', id: 2 } }, {}],
    ['HSK-8 another life of the worker', 'WRONG_PEER', { wants: { name: 'worker2', id: 5 } }, {}],
    ['HSK-8 itself', 'WRONG_PEER', { self: B, wants: null }, {}],
  ])('%s: %s', (_, code, ofDialler, ofListener) => {
    const outcome = meet(dialler(ofDialler), listener(ofListener))
    expect(codes(outcome)).toEqual([code, code])
    for (const end of [outcome.dialler, outcome.listener] as PostgradError[]) expect(end.message).toMatch(/^(connect|accept): [^\n]+\.$/)
  })

  test('HSK-8 another version of the protocol, from either side', () => {
    const other = (bytes: Uint8Array, i: number, at: number) =>
      i === at ? Uint8Array.from(bytes, (byte, j) => (j === 5 ? 2 : byte)) : bytes
    for (const at of [0, 1])
      expect(codes(meet(dialler(), listener(), (bytes, i) => other(bytes, i, at)))).toEqual(['VERSION_MISMATCH', 'VERSION_MISMATCH'])
    // The rest of a message of another version is not looked at.
    const refusal = Handshake.refusal(null) as Uint8Array
    refusal[5] = 9
    const d = dialler()
    d.begin()
    expect(() => d.receive(refusal.subarray(0, 9))).toThrow(/expected protocol 1, got protocol 9/)
  })

  test('HSK-8 a listener that is not the one that was dialled, and says so itself', () => {
    // It does not mind who is wanted.
    const l = listener({ self: { ...B, id: 7 } })
    const d = dialler()
    const hello = d.begin() as Uint8Array
    const challenge = l.receive(withJson(hello, JSON.stringify({ ...jsonOf(hello), wants: '' }))).send as Uint8Array
    expect(() => d.receive(challenge)).toThrow(/expected worker2#2, got worker2#7/)
  })
})

describe('HSK-9 each message has one form', () => {
  const hello = () => dialler().begin() as Uint8Array
  const refusedBy = (bytes: Uint8Array): string => {
    try {
      listener().receive(bytes)
    } catch (error) {
      if (isError(error)) return error.code
      throw error
    }
    return 'taken'
  }
  const fields = (changes: object) => withJson(hello(), JSON.stringify({ ...jsonOf(hello()), ...changes }))

  test('HSK-9 other bytes for the same fields', () => {
    const bytes = hello()
    const text = new TextDecoder().decode(bytes.subarray(8))
    const entries = Object.entries(jsonOf(bytes))
    expect(refusedBy(bytes)).toBe('taken')
    const others = [
      withJson(bytes, `${text} `),
      withJson(bytes, text.replace(':', ': ')),
      withJson(bytes, text.replace('"id":1', '"id":1.0')),
      withJson(bytes, text.replace('"id":1', '"id":1e0')),
      withJson(bytes, text.replace('worker1', '\\u0077orker1')),
      withJson(bytes, text.replace('"id":1', '"id":9,"id":1')),
      withJson(bytes, JSON.stringify(Object.fromEntries(entries.reverse()))),
      Uint8Array.from([...bytes.subarray(0, 7), 1, ...bytes.subarray(8)]),
    ]
    expect(others.map(refusedBy)).toEqual(others.map(() => 'HANDSHAKE_INVALID'))
  })

  test.each<[string, object]>([
    ['an unknown field', { more: 1 }],
    ['the prototype', JSON.parse('{"__proto__":1}')],
    ['a short nonce', { nonce: Buffer.alloc(31).toString('base64') }],
    ['a nonce with bits of nothing', { nonce: `${'A'.repeat(42)}B=` }],
    ['an id above 16 bits', { id: 65_536 }],
    ['an id below 0', { id: -1 }],
    ['a fraction', { id: 0.5 }],
    ['an id as text', { id: '1' }],
    ['a name with a line', { name: 'a\nb' }],
    ['a long name', { name: 'a'.repeat(128) }],
    ['an empty role', { role: '' }],
    ['a role of another alphabet', { role: 'rôle' }],
    ['a long purpose', { purpose: 'a'.repeat(17) }],
    ['an unknown way', { how: 'password' }],
    ['an object in an object', { wants: { name: 'worker2', id: 2 } }],
    ['null', { cluster: null }],
  ])('HSK-9 %s', (_, changes) => {
    expect(refusedBy(fields(changes))).toBe('HANDSHAKE_INVALID')
  })

  test.each(['nonce', 'release', 'cluster', 'name', 'id', 'role', 'purpose', 'wants', 'how'])('HSK-9 without %s', (field) => {
    const { [field]: _, ...others } = jsonOf(hello())
    expect(refusedBy(withJson(hello(), JSON.stringify(others)))).toBe('HANDSHAKE_INVALID')
  })

  test('HSK-9 no bytes make anything but the five errors, at any moment', () => {
    const known = ['AUTH_FAILED', 'VERSION_MISMATCH', 'CLUSTER_MISMATCH', 'WRONG_PEER', 'HANDSHAKE_INVALID']
    const whole = meet(dialler(), listener()).messages
    const head = fc.constantFrom(...whole.map((message) => message.slice(0, 8)))
    const json = fc.json({ maxDepth: 40 }).map((text) => new TextEncoder().encode(text))
    const spliced = fc
      .tuple(fc.constantFrom(...whole), fc.nat(400), fc.nat(60), fc.uint8Array({ maxLength: 60 }))
      .map(([message, at, cut, more]) => {
        return Uint8Array.from([...message.subarray(0, at), ...more, ...message.subarray(at + cut)])
      })
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.tuple(head, fc.oneof(json, fc.uint8Array())).map(([a, b]) => Uint8Array.from([...a, ...b])),
      spliced,
    )
    fc.assert(
      fc.property(bytes, fc.nat(3), (garbage, at) => {
        fc.pre(!whole.some((message) => Buffer.compare(message, garbage) === 0))
        const outcome = meet(dialler(), listener(), (message, i) => (i === at ? garbage : message))
        for (const end of [outcome.dialler, outcome.listener]) if (isError(end)) expect(known).toContain(end.code)
        // Bytes in the place of a proof, or of anything that a proof covers, let nobody in.
        expect(isError(at % 2 === 0 ? outcome.listener : outcome.dialler) || isError(outcome.dialler)).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  test('HSK-9 out of turn', () => {
    const { messages } = meet(dialler(), listener())
    for (const i of [1, 2, 3]) expect(refusedBy(messages[i] as Uint8Array)).toBe('HANDSHAKE_INVALID')
    const l = listener()
    l.receive(messages[0] as Uint8Array)
    expect(() => l.receive(messages[0] as Uint8Array)).toThrow(/expected PROOF, got HELLO/)
    expect(() => dialler().receive(messages[1] as Uint8Array)).toThrow(/no message in this state/)
  })

  test('HSK-9 more than 4 KiB in all, before a look at them', () => {
    expect(refusedBy(new Uint8Array(HANDSHAKE_BYTES_MAX + 1))).toBe('HANDSHAKE_INVALID')
    expect(() => listener().receive(new Uint8Array(HANDSHAKE_BYTES_MAX + 1))).toThrow(/at most 4096 bytes/)
    const l = listener()
    l.receive(hello())
    expect(() => l.receive(new Uint8Array(HANDSHAKE_BYTES_MAX - 100))).toThrow(/at most 4096 bytes/)
  })

  test('HSK-9 the longest that is allowed stays below a quarter of that', () => {
    const self = { cluster: 'c'.repeat(127), name: 'n'.repeat(127), id: 65_535, role: 'r'.repeat(64) }
    const credentials = keysOf(self.role, { [self.role]: MEMBER_KEY })
    const long = dialler({
      self,
      credentials,
      purpose: 'p'.repeat(16),
      wants: { name: 'w'.repeat(127), id: 65_534 },
      release: '1'.repeat(64),
    }).begin()
    expect((long as Uint8Array).length).toBeLessThan(HANDSHAKE_BYTES_MAX / 4)
  })
})

describe('HSK-10 a refusal', () => {
  test('HSK-10 is not answered', () => {
    const outcome = meet(dialler({ self: { ...A, cluster: 'other' } }), listener())
    expect((outcome.dialler as PostgradError).values).toEqual({ reason: 'cluster', by: 'peer' })
    expect(Handshake.refusal(outcome.dialler)).toBe(null)
    expect(outcome.messages).toHaveLength(2)
  })

  test('HSK-10 says nothing of what this end knows, whatever went wrong', () => {
    const secret = new Error('the password is 1234')
    const refusals = [
      secret,
      Object.assign(new Error('x'), { name: 'PostgradError', op: 'x', code: 'AUTH_FAILED', values: { reason: secret.message } }),
      null,
      'text',
    ]
    for (const error of refusals) expect(jsonOf(Handshake.refusal(error) as Uint8Array)).toEqual({ reason: 'malformed' })
    const { messages } = meet(dialler({ self: { ...A, cluster: 'guess' } }), listener({ self: { ...B, cluster: 'the-real-name' } }))
    expect(Buffer.concat(messages).includes('the-real-name')).toBe(false)
  })

  test('HSK-10 with a reason that nobody knows is no refusal', () => {
    for (const reason of ['', 'toString', '__proto__', 'x'.repeat(300)]) {
      const d = dialler()
      d.begin()
      expect(() => d.receive(encodeMessage('REFUSAL', { reason }))).toThrow(/a reason of REFUSAL in its form/)
    }
  })
})

test('HSK-11 after an error or the end nothing more is taken', () => {
  const [d, l] = [dialler(), listener()]
  const { messages } = meet(d, l)
  for (const end of [d, l]) for (const message of messages) expect(() => end.receive(message)).toThrow(/no message in this state/)
  const failed = listener()
  expect(() => failed.receive(new Uint8Array(8))).toThrow(/a handshake of postgrad/)
  expect(() => failed.receive(messages[0] as Uint8Array)).toThrow(/no message in this state/)
})

test.each<[string, Changes, string]>([
  ['cluster', { self: { ...A, cluster: 'a\nb' } }, 'got "a\\nb". Correct { cluster }.'],
  ['name', { self: { ...A, name: 'a b' } }, 'got "a b". Correct { name }.'],
  ['role', { self: { ...A, role: 'observer' } }, 'got "observer". Correct { role }.'],
  ['purpose', { purpose: 'X' }, 'got "X". Correct { purpose }.'],
  ['release', { release: 'a b' }, 'got "a b". Correct { release }.'],
])('HSK-1 an end that cannot say who it is says so at once: %s', (option, changes, text) => {
  try {
    dialler(changes)
  } catch (error) {
    expect(isPostgradError(error, 'INVALID_ARGUMENT')).toBe(true)
    expect((error as PostgradError).values).toEqual({ option })
    expect((error as PostgradError).message).toContain(text)
    return
  }
  throw new Error('nothing was thrown')
})
