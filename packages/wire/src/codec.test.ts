import { describe, expect, test } from '@jest/globals'
import type { Tensor } from '@postgrad/tensor'
import { SparseTensor, tensor, withDevice, zeros } from '@postgrad/tensor'
import { residentDevice } from '@postgrad/tensor/suite'
import { Codec, SentFailure } from './codec.js'
import { passHead, requestHead } from './head.js'
import type { Message } from './message.js'
import { MessageType } from './message-type.js'
import { INLINE_BYTES_MAX } from './tensor-codec.js'
import type { ValueExtension } from './value-tag.js'

const codec = new Codec()

/** The value, whose bytes have gone to another thread. */
function detached<T extends ArrayBufferView>(view: T): T {
  structuredClone(view.buffer, { transfer: [view.buffer as ArrayBuffer] })
  return view
}

/** As a link hands it over: bytes of their own, at a multiple of 8. */
function carried(from: Codec, type: MessageType, body: readonly unknown[], env?: unknown): { header: Uint8Array; segments: Uint8Array[] } {
  const { header, segments } = from.encode(from.prepare(type, body, env), env)
  return { header: new Uint8Array(header), segments: segments.map((bytes) => new Uint8Array(bytes)) }
}

function through(...args: unknown[]): Message {
  return codec.decode(carried(codec, MessageType.CALL, ['f', args]))
}

function roundTrip(value: unknown): unknown {
  return codec.decode(carried(codec, MessageType.RESULT, [value])).body[0]
}

const elements = (x: unknown) => (x as Tensor).toArray()

describe('values', () => {
  const shared = { a: 1 }
  const cases: [string, unknown][] = [
    ['null', null],
    ['undefined', undefined],
    ['booleans', [true, false]],
    [
      'numbers',
      [
        0,
        1,
        -1,
        127,
        128,
        255,
        256,
        65536,
        2 ** 31,
        2 ** 32,
        2 ** 53,
        2 ** 60,
        -(2 ** 31) - 1,
        1e-300,
        Number.POSITIVE_INFINITY,
        Number.NaN,
      ],
    ],
    ['negative zero, alone and inside', [-0, [-0], { z: -0 }]],
    [
      'bigints of every size',
      [0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 63n, 2n ** 64n - 1n, 2n ** 64n, -(2n ** 63n) - 1n, 3n ** 200n],
    ],
    [
      'strings',
      ['', 'abc', 'ä', '漢字', '😀', '\u0000', 'x'.repeat(70_000), '\ufeff', `\ufeff${'y'.repeat(100)}`, '\ud800', 'a\udc00b', '\ud83d'],
    ],
    ['arrays that begin with null', [null, [null], [null, null, [null, 1]], [null, 2, 3]]],
    ['undefined in an array', [undefined, 1]],
    [
      'short texts that differ in a byte or in their length',
      ['name', 'nama', 'name\u0000', 'n', `${'x'.repeat(31)}a`, `${'x'.repeat(31)}b`, 'name'],
    ],
    ['objects', { a: undefined, '': 1, 'ä b': 2, 1: 'one', nested: { deep: [{}] } }],
    ['an object without a prototype', Object.assign(Object.create(null), { x: 1 })],
    ['an object with keys that mean something elsewhere', { constructor: 1, toJSON: 2, hasOwnProperty: 3, toString: 4, length: 5 }],
    ['an object with a key that is no UTF-8', { '\ud800': 1, ok: { '\udc00': 2 } }],
    ['one object in two places', [shared, shared]],
    ['dates', [new Date(0), new Date(1_700_000_000_123)]],
    ['regular expressions', [/a/, /[/\]]+\n/giu]],
    [
      'maps',
      new Map<unknown, unknown>([
        ['a', 1],
        [{ k: 1 }, new Map([[1n, undefined]])],
        [null, -0],
      ]),
    ],
    ['sets', new Set<unknown>([1, 'a', [2], new Set()])],
    ['array buffers', [new ArrayBuffer(0), new Uint8Array([1, 2, 3]).buffer]],
    [
      'typed arrays of every kind',
      [
        new Int8Array([-1, 2]),
        new Uint8Array([1, 255]),
        new Uint8ClampedArray([7]),
        new Int16Array([-300]),
        new Uint16Array([60_000]),
        new Int32Array([-70_000]),
        new Uint32Array([4e9]),
        new Float32Array([0.5, Number.NaN]),
        new Float64Array([1e300]),
        new BigInt64Array([-5n]),
        new BigUint64Array([2n ** 64n - 1n]),
        new DataView(new Uint8Array([9, 8]).buffer),
      ],
    ],
    ['a view in the middle of a buffer', new Float32Array(new ArrayBuffer(32), 8, 3)],
    [
      'large typed arrays',
      [Float64Array.from({ length: 5000 }, (_, i) => i), new Uint8Array(INLINE_BYTES_MAX), new Uint8Array(INLINE_BYTES_MAX + 1)],
    ],
  ]

  test.each(cases)('%s arrive equal', (_, value) => {
    expect(roundTrip(value)).toEqual(value)
    expect(through(value, { inside: [value] }).body[1]).toEqual([value, { inside: [value] }])
  })

  test.each([
    ['a string', 'b'],
    ['a tag', 2],
    ['a negative number', -1],
    ['a fraction', 1.5],
    ['a large number', 2 ** 30],
    ['a list', [1]],
    ['null', null],
  ])('errors whose list of errors begins with null and %s', (_, second) => {
    const error = new AggregateError([null, second], 'both')
    // A long stack does not fit into cells.
    error.stack = 'AggregateError: both'
    expect((roundTrip(error) as AggregateError).errors).toEqual([null, second])
  })

  test('negative zero and NaN stay what they are', () => {
    expect(Object.is(roundTrip(-0), -0)).toBe(true)
    expect(Object.is((roundTrip([{ z: -0 }]) as [{ z: number }])[0].z, -0)).toBe(true)
    expect(roundTrip(Number.NaN)).toBeNaN()
    expect(Number(roundTrip(new Date(Number.NaN)))).toBeNaN()
  })

  test('a key named __proto__ is a key, and changes no prototype', () => {
    const value = JSON.parse('{"__proto__": {"polluted": true}, "a": 1}')
    const back = roundTrip({ value }) as { value: object }
    expect(Object.getPrototypeOf(back.value)).toBe(Object.prototype)
    expect(Object.hasOwn(back.value, '__proto__')).toBe(true)
    expect(JSON.stringify(back.value)).toBe(JSON.stringify(value))
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  test('an object with such a key behind a tensor sends the tensor once', () => {
    const value = Object.defineProperty({ a: tensor([1]) } as Record<string, unknown>, '__proto__', {
      value: new Uint8Array(5000),
      enumerable: true,
    })
    const message = codec.decode(carried(codec, MessageType.RESULT, [value]))
    expect(message.tensors.length).toBe(1)
    expect(Object.keys(message.body[0] as object)).toEqual(['a', '__proto__'])
  })

  test('an object with more keys than fit in two bytes arrives whole', () => {
    const value = Object.fromEntries(Array.from({ length: 70_000 }, (_, i) => [`k${i}`, i]))
    expect(roundTrip(value)).toEqual(value)
  })

  test('shared memory below a view is copied', () => {
    const view = new Int32Array(new SharedArrayBuffer(8))
    view[1] = 5
    const back = roundTrip(view) as Int32Array
    expect([...back]).toEqual([0, 5])
    expect(Object.prototype.toString.call(back.buffer)).toBe('[object ArrayBuffer]')
  })

  test('what is sent is a copy: neither side sees what the other writes afterwards', () => {
    const small = new Float32Array([1, 2])
    const large = new Uint8Array(10_000).fill(3)
    const list = [1]
    const frame = carried(codec, MessageType.CALL, ['f', [small, large, list]])
    small[0] = 9
    large[0] = 9
    list[0] = 9
    expect(small.length).toBe(2)
    const [a, b, c] = codec.decode(frame).body[1] as [Float32Array, Uint8Array, number[]]
    expect([a[0], b[0], c[0]]).toEqual([1, 3, 1])
  })

  test('small values of one message do not share memory', () => {
    const [a, b] = through(new Uint8Array([1, 2]), new Uint8Array([3])).body[1] as [Uint8Array, Uint8Array]
    expect(a.buffer.byteLength).toBe(2)
    expect(b.buffer.byteLength).toBe(1)
  })
})

describe('what cannot be sent is refused with its path', () => {
  class Point {
    x = 1
  }
  const cycle: Record<string, unknown> = {}
  cycle.list = [{ cycle }]
  const named = (tag: string) => Object.setPrototypeOf({}, Object.assign(Object.create({}), { [Symbol.toStringTag]: tag }))
  const cases: [string, unknown, string][] = [
    ['a function', { foo: () => 1 }, 'args[1].foo is a function'],
    ['a method of an array', [[function named() {}]], 'args[1][0][0] is a function (named)'],
    ['a symbol', { 'a b': Symbol('s') }, 'args[1]["a b"] is a symbol'],
    ['a class instance', [new Point()], 'args[1][0] is an instance of Point'],
    ['a promise', Promise.resolve(1), 'args[1] is a promise'],
    ['a cycle', cycle, 'args[1].list[0].cycle is a reference to something that it is inside of'],
    ['inside a map', new Map([['k', new WeakMap()]]), 'args[1].values()[0] is an instance of WeakMap'],
    ['a key of a map', new Map([[Symbol.iterator, 1]]), 'args[1].keys()[0] is a symbol'],
    ['inside a set', new Set([1, () => 1]), 'args[1].values()[1] is a function'],
    ['a hole in an array', { list: [[Object.assign([], { 0: 1, 2: undefined })]] }, 'args[1].list[0][0][1] is a hole in an array'],
    ['shared memory itself', new SharedArrayBuffer(1), 'args[1] is shared memory'],
    [
      'a typed array whose buffer was transferred',
      { rows: [detached(new Float32Array(2))] },
      'args[1].rows[0] is a buffer that is detached',
    ],
    ['an empty one', detached(new Uint8Array(0)), 'args[1] is a buffer that is detached'],
    ['a DataView of such a buffer', detached(new DataView(new ArrayBuffer(8), 4)), 'args[1] is a buffer that is detached'],
    ['the buffer itself', detached(new Uint8Array(8)).buffer, 'args[1] is a buffer that is detached'],
    ['a class instance that calls itself a Date', named('Date'), 'args[1] is an instance of'],
    ['a class instance that calls itself a RegExp', named('RegExp'), 'args[1] is an instance of'],
  ]

  test.each(cases)('%s', (_, value, message) => {
    expect(() => codec.prepare(MessageType.CALL, ['f', [0, value]])).toThrow(
      expect.objectContaining({ code: 'WIRE_UNSUPPORTED_VALUE', message: expect.stringContaining(message) }),
    )
  })

  test('a tensor that its device has yet to compute', async () => {
    await withDevice(residentDevice(), async () => {
      const x = tensor([1, 2]).exp()
      const send = () => codec.prepare(MessageType.RESULT, [x])
      expect(send).toThrow(expect.objectContaining({ code: 'READ_NOT_SYNCHRONOUS', remedy: expect.stringContaining('cpu()') }))
      const here = await x.cpu()
      expect(codec.prepare(MessageType.RESULT, [here]).tensors).toEqual([here])
    })
  })

  test('LATE-1 a tensor of a device arrives on the device that the codec names, with its bytes of the encoding', async () => {
    const [here, there] = [residentDevice(), residentDevice()]
    const asked: unknown[] = []
    const late = new Codec({
      deviceOf: (...args) => {
        asked.push(args)
        return there.spec
      },
    })
    for (const numel of [2, 5000]) {
      const x = tensor(new Float32Array(numel).fill(3), { device: here })
      const out = late.prepare(MessageType.CALL, ['f', [x, tensor([1]), 'y']], 'env')
      const { header, segments } = late.encode(out, 'env')
      x.fill_(7)
      await out.late
      const { body, tensors } = late.decode({ header: new Uint8Array(header), segments: segments.map((bytes) => new Uint8Array(bytes)) })
      const [got, plain, text] = body[1] as [Tensor, Tensor, string]
      expect([got.device.spec, plain.device.spec, text, tensors]).toEqual([there.spec, 'cpu', 'y', [got, plain]])
      expect(await got.data()).toEqual(new Float32Array(numel).fill(3))
      // A message without tensors of devices has all its bytes.
      const whole = late.prepare(MessageType.CALL, ['f', [plain]])
      late.encode(whole)
      expect(whole.late).toBe(null)
    }
    expect(asked).toEqual([
      [here.spec, 'env'],
      [here.spec, 'env'],
    ])
    const rows = new SparseTensor(tensor([1], { dtype: 'int32', device: here }), tensor([[5, 6]], { device: here }), [3, 2])
    const out = late.prepare(MessageType.RESULT, [rows])
    const { header } = late.encode(out)
    await out.late
    const sparse = late.decode({ header: new Uint8Array(header), segments: [] }).body[0] as SparseTensor
    expect([sparse.shape, sparse.values().device.spec, [...(await sparse.values().data())]]).toEqual([[3, 2], there.spec, [5, 6]])
    const lost = new Codec({ deviceOf: () => 'nowhere' })
    const frame = carried(lost, MessageType.RESULT, [tensor([1], { device: here })])
    expect(() => lost.decode(frame)).toThrow(expect.objectContaining({ code: 'DEVICE_UNKNOWN' }))
  })

  test('LATE-3 a failure is its error at the receiver, and has the head of its message', () => {
    const out = Object.assign(codec.prepare(MessageType.PROPAGATE_GRADIENTS, [[tensor([1])], 0]), { requestId: 7, context: 5n, pass: 6n })
    const { header, segments } = codec.encodeFailure(Object.assign(out, { autogradId: 8n, lineage: [1] }), new RangeError('lost'))
    const frame = { header: new Uint8Array(header), segments }
    expect([requestHead(frame), passHead(frame)]).toEqual([
      { type: MessageType.PROPAGATE_GRADIENTS, requestId: 7 },
      { context: 5n, pass: 6n },
    ])
    const caught = (() => {
      try {
        return codec.decode(frame)
      } catch (error) {
        return error
      }
    })()
    expect(caught).toBeInstanceOf(SentFailure)
    expect((caught as SentFailure).error).toMatchObject({ name: 'RangeError', message: 'lost' })
  })

  test('too deep', () => {
    let value: unknown = 1
    for (let i = 0; i < 200; i++) value = [value]
    expect(() => codec.prepare(MessageType.RESULT, [value])).toThrow(expect.objectContaining({ code: 'WIRE_TOO_DEEP' }))
  })

  test('too many elements, too many bytes', () => {
    expect(() => codec.prepare(MessageType.RESULT, [new Array(1_000_001).fill(0)])).toThrow(
      expect.objectContaining({ code: 'WIRE_TOO_LARGE' }),
    )
    expect(() => codec.encode(codec.prepare(MessageType.RESULT, ['x'.repeat(9 * 2 ** 20)]))).toThrow(
      expect.objectContaining({ code: 'WIRE_TOO_LARGE' }),
    )
  })

  test.each<[string, (n: number) => unknown]>([
    ['numbers', (n) => new Array(n).fill(1)],
    ['negative zeros', (n) => new Array(n).fill(-0)],
    ['undefined', (n) => new Array(n).fill(undefined)],
    ['arrays that begin with null', (n) => Array.from({ length: n }, () => [null])],
    ['bigints beyond 64 bits', (n) => new Array(n).fill(2n ** 70n)],
    ['code units', (n) => '\ud800'.padEnd(n, 'x')],
    ['dates', (n) => new Array(n).fill(new Date(0))],
    ['regular expressions', (n) => new Array(n).fill(/x/)],
    ['maps', (n) => Array.from({ length: n }, () => new Map([[1, 2]]))],
    ['sets', (n) => Array.from({ length: n }, () => new Set([1]))],
    ['buffers', (n) => new Array(n).fill(new Uint8Array(1))],
    ['tensors', (n) => new Array(n).fill(tensor([1]))],
    ['objects', (n) => Array.from({ length: n }, () => ({ a: 1 }))],
    ['objects with a strange key', (n) => Array.from({ length: n }, () => ({ '\ud800': 1 }))],
    ['errors', (n) => new Array(n).fill(new AggregateError([1, 2], 'x', { cause: new Error('y') }))],
  ])('the sender counts %s as the receiver does, or more', (_, make) => {
    const itemsMax = 500
    const small = new Codec({ limits: { itemsMax }, worker: { name: 'w', id: 1 } })
    let passed = 0
    for (let n = 0; n <= itemsMax; n++) {
      let frame: ReturnType<Codec['encode']>
      try {
        frame = small.encode(small.prepare(MessageType.RESULT, [make(n)]))
      } catch (error) {
        expect(error).toMatchObject({ code: 'WIRE_TOO_LARGE' })
        break
      }
      small.decode(frame)
      passed++
    }
    expect(passed).toBeGreaterThan(5)
    expect(passed).toBeLessThan(itemsMax)
  })

  test('whatever prepare lets through at the limit of depth, decode takes', () => {
    let value: unknown = new Error('at the bottom', { cause: new Error('b', { cause: new Error('c') }) })
    let depth = 0
    for (; ; depth++) {
      try {
        codec.prepare(MessageType.CALL, ['f', [[value]]])
      } catch {
        break
      }
      value = [value]
    }
    expect(depth).toBeGreaterThan(50)
    expect(codec.decode(carried(codec, MessageType.CALL, ['f', [(value as [unknown])[0]]])).type).toBe(MessageType.CALL)
  })
})

describe('tensors', () => {
  test.each(['float32', 'float64', 'int32', 'bool'] as const)('%s of any shape arrives with its elements', (dtype) => {
    const shapes = [[], [0], [1], [3], [2, 3], [2, 0, 4], [1, 1, 1], [64], [65], [7, 11, 13], [1024], [1025], [40, 50]]
    const sent = shapes.map((shape) => {
      const x = zeros(shape, { dtype })
      for (let i = 0; i < x.numel; i++) x.storage.host![i] = dtype === 'bool' ? i % 2 : (i * 37) % 101
      return x
    })
    const message = through(...sent)
    expect(message.tensors.map((x) => [x.dtype, x.shape])).toEqual(shapes.map((shape) => [dtype, shape]))
    expect(message.tensors.map(elements)).toEqual(sent.map(elements))
    expect(message.body[1]).toEqual([...message.tensors])
  })

  test('views are gathered row by row', () => {
    const x = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ])
    const views = [
      x.T,
      x.narrow(1, 1, 2),
      x.select(0, 1),
      x.select(1, 2),
      x.select(0, 0).unsqueeze(0).expand([4, 3]),
      x.narrow(0, 1, 1).narrow(1, 2, 1),
      x.T.select(0, 1),
    ]
    const large = tensor(Array.from({ length: 60 }, (_, i) => Array.from({ length: 50 }, (_, j) => i * 50 + j)))
    const sent = [...views, large.T, large.narrow(1, 0, 40)]
    const message = through(...sent)
    expect(message.tensors.map(elements)).toEqual(sent.map(elements))
    expect(message.tensors.every((t) => t.isContiguous)).toBe(true)
  })

  test('are found in order of appearance, anywhere, with what the sender said of them', () => {
    const [a, b, c, d] = [1, 2, 3, 4].map((v) => tensor([v])) as [Tensor, Tensor, Tensor, Tensor]
    const outgoing = codec.prepare(MessageType.CALL, ['f', [{ a }, [[b]], new Map([['k', c]]), new Set([d]), a]])
    expect(outgoing.tensors).toEqual([a, b, c, d, a])
    outgoing.requiresGrad = [true, false, false, true, true]
    const message = codec.decode(codec.encode(outgoing))
    expect(message.tensors.map((x) => x.itemSync())).toEqual([1, 2, 3, 4, 1])
    expect(message.requiresGrad).toEqual([true, false, false, true, true])
    expect(message.tensors.every((x) => x.autograd === null)).toBe(true)
    expect((message.body[1] as [{ a: Tensor }])[0].a).toBe(message.tensors[0])
  })

  test('are copies: a small one holds its elements alone, a large one its segment', () => {
    const small = tensor([1, 2, 3])
    const large = zeros([2000])
    const frame = codec.encode(codec.prepare(MessageType.RESULT, [[small, large]]))
    expect(frame.segments.map((bytes) => [bytes.length, bytes.byteOffset, bytes.buffer.byteLength])).toEqual([[8000, 0, 8000]])
    small.fill_(7)
    large.fill_(7)
    const { tensors } = codec.decode(frame)
    expect(elements(tensors[0])).toEqual([1, 2, 3])
    expect(tensors[0]?.storage.host?.buffer.byteLength).toBe(12)
    expect(tensors[1]?.storage.host?.[0]).toBe(0)
    expect(tensors[1]?.storage.host?.buffer).toBe(frame.segments[0]?.buffer)
  })

  test('a getter that sends a message while its own is written: both arrive whole', () => {
    const codec = new Codec()
    const frames: ReturnType<Codec['encode']>[] = []
    let isWritten = false
    const body = {
      first: 1,
      get sent() {
        if (isWritten) frames.push(codec.encode(codec.prepare(MessageType.RESULT, ['a text within another message'])))
        return 7
      },
      last: 'a text after the getter',
    }
    const message = codec.prepare(MessageType.RESULT, [[body, 5]])
    isWritten = true
    const outer = codec.encode(message)
    isWritten = false
    expect(frames.length).toBe(1)
    expect(codec.decode(outer).body).toEqual([[{ first: 1, sent: 7, last: 'a text after the getter' }, 5]])
    expect(codec.decode(frames[0]!).body).toEqual(['a text within another message'])
  })

  test('frames own their bytes, whichever codecs of a thread wrote them in turn', () => {
    const codecs = [new Codec(), new Codec()]
    const frames = Array.from({ length: 400 }, (_, i) => {
      const writer = codecs[i % 2]!
      return writer.encode(writer.prepare(MessageType.RESULT, [[tensor([i, i + 0.5]), `n${i}`]]))
    })
    frames.forEach((frame, i) => {
      const { body, tensors } = codecs[(i >> 1) % 2]!.decode(frame)
      expect([elements(tensors[0]), (body[0] as unknown[])[1]]).toEqual([[i, i + 0.5], `n${i}`])
    })
  })

  test('a segment that is a part of something larger is copied out of it', () => {
    const { header, segments } = codec.encode(codec.prepare(MessageType.RESULT, [zeros([2000])]))
    const whole = new Uint8Array(8000 + 64)
    const part = whole.subarray(4, 8004)
    part.set(segments[0] as Uint8Array)
    const { tensors } = codec.decode({ header, segments: [part] })
    expect(tensors[0]?.storage.host?.buffer.byteLength).toBe(8000)
  })

  test('gradients with gaps', () => {
    const out = codec.prepare(MessageType.PROPAGATE_GRADIENTS, [[null, tensor([1]), null], 0])
    Object.assign(out, { context: 1n, autogradId: 2n, pass: 3n })
    const message = codec.decode(codec.encode(out))
    const [grads, how] = message.body as [(Tensor | null)[], number]
    expect([grads.map((g) => g && elements(g)), how]).toEqual([[null, [1], null], 0])
  })

  test('a header that does not lie at a multiple of 8 is read all the same', () => {
    const { header, segments } = carried(codec, MessageType.RESULT, [tensor([1, 2, 3], { dtype: 'float64' })])
    for (let shift = 1; shift < 8; shift++) {
      const moved = new Uint8Array(header.length + 8).subarray(shift, shift + header.length)
      moved.set(header)
      expect(elements(codec.decode({ header: moved, segments }).tensors[0])).toEqual([1, 2, 3])
    }
  })
})

describe('the envelope', () => {
  test('is null where it is absent, and costs nothing then', () => {
    const frame = codec.encode(codec.prepare(MessageType.CALL, ['f', []]))
    // The head, and a cell each for the name's length, the name and the list.
    expect(frame.header.length).toBe(16 + 3 * 8)
    const { context, autogradId, pass, deadlineMs, trace, lineage, requestId, tensors } = codec.decode(frame)
    expect({ context, autogradId, pass, deadlineMs, trace, lineage, requestId, tensors }).toEqual({
      ...{ context: null, autogradId: null, pass: null, deadlineMs: null, trace: null, lineage: null, requestId: 0, tensors: [] },
    })
  })

  test.each(['context', 'autogradId', 'pass', 'deadlineMs', 'trace', 'lineage'] as const)('carries %s alone', (field) => {
    const outgoing = codec.prepare(MessageType.CALL, ['f', []])
    const value = {
      context: 2n ** 64n - 1n,
      autogradId: 5n,
      pass: 0n,
      deadlineMs: 12.5,
      trace: { id: [undefined, -0] },
      lineage: [0, 2 ** 53 - 1],
    }[field]
    Object.assign(outgoing, { [field]: value, requestId: 2 ** 40 })
    const message = codec.decode(codec.encode(outgoing))
    expect(message[field]).toEqual(value)
    expect(message.requestId).toBe(2 ** 40)
  })

  test('whatever does not fit into cells arrives packed, and the next message in cells', () => {
    const inCells: boolean[] = []
    for (const count of [0, 100, 700, 1500, 3]) {
      const args = [{ text: 'x'.repeat(count) }, count]
      const outgoing = codec.prepare(MessageType.CALL, ['f', args])
      const head = { context: 7n, deadlineMs: 5, trace: [count], lineage: new Array(count).fill(count) }
      const frame = codec.encode(Object.assign(outgoing, head))
      inCells.push(((frame.header[5] as number) & 0x20) === 0)
      expect(codec.decode(frame)).toMatchObject({ body: ['f', args], ...head })
    }
    expect(inCells).toEqual([true, true, false, false, true])
  })

  test('the gap after a text shows nothing of a message that did not fit into cells', () => {
    codec.encode(codec.prepare(MessageType.RESULT, [[...new Array(200).fill(-1), 'x'.repeat(1000)]]))
    const { header } = codec.encode(codec.prepare(MessageType.RESULT, ['abc']))
    expect([...header.subarray(-8)]).toEqual([0x61, 0x62, 0x63, 0, 0, 0, 0, 0])
  })

  test('refuses tensors in trace', () => {
    const outgoing = codec.prepare(MessageType.CALL, ['f', []])
    outgoing.trace = [tensor(1)]
    expect(() => codec.encode(outgoing)).toThrow(expect.objectContaining({ code: 'WIRE_UNSUPPORTED_VALUE' }))
  })

  test.each([
    ['a fraction', [1.5]],
    ['a negative number', [0, -1]],
    ['a bigint', [1n]],
    ['an array', [[1]]],
    ['no array', { length: 0 }],
  ])('refuses %s as lineage when it arrives', (_, lineage) => {
    const outgoing = codec.prepare(MessageType.CALL, ['f', []])
    Object.assign(outgoing, { lineage })
    expect(() => codec.decode(codec.encode(outgoing))).toThrow(expect.objectContaining({ code: 'WIRE_BAD_FIELD' }))
  })

  test('refuses more numbers of lineage than a receiver takes, at the sender', () => {
    const small = new Codec({ limits: { itemsMax: 20 } })
    const outgoing = small.prepare(MessageType.CALL, ['f', []])
    outgoing.lineage = new Array(20).fill(1)
    expect(() => small.encode(outgoing)).toThrow(expect.objectContaining({ code: 'WIRE_TOO_LARGE' }))
  })
})

describe('extensions', () => {
  class Ref {
    readonly id: bigint
    constructor(id: bigint) {
      this.id = id
    }
  }
  const seen: unknown[] = []
  const extension: ValueExtension = {
    tag: 0x20,
    matches: (value) => value instanceof Ref,
    encode: (value, env) => {
      seen.push(env)
      return [(value as Ref).id, tensor([1]), undefined]
    },
    decode: (plain, env) => {
      seen.push(env)
      return new Ref((plain as [bigint])[0])
    },
  }

  test('carry values of a package above, with the environment of each side', () => {
    const extended = new Codec({ extensions: [extension] })
    const frame = carried(extended, MessageType.CALL, ['f', [{ r: new Ref(5n) }, [new Ref(6n)]]], 'sender')
    const message = extended.decode(frame, 'receiver')
    expect(message.body[1]).toEqual([{ r: new Ref(5n) }, [new Ref(6n)]])
    expect(message.tensors.length).toBe(2)
    expect(seen).toEqual(['sender', 'sender', 'receiver', 'receiver'])
    expect(() => codec.decode(frame)).toThrow(expect.objectContaining({ code: 'WIRE_UNKNOWN_VALUE' }))
  })

  test('may use the codec themselves while it is at work', () => {
    const nested: Message[] = []
    const again: ValueExtension = {
      tag: 0x21,
      matches: (value) => value instanceof Ref,
      encode: (value) => {
        busy.encode(busy.prepare(MessageType.RREF_FORK_REQUEST, [1n, 2n]))
        busy.encode(busy.prepare(MessageType.RESULT, [tensor([9])]))
        return (value as Ref).id
      },
      decode: (plain) => {
        nested.push(busy.decode(busy.encode(busy.prepare(MessageType.RESULT, [tensor([7])]))))
        return new Ref(plain as bigint)
      },
    }
    const busy = new Codec({ extensions: [again] })
    const message = busy.decode(carried(busy, MessageType.CALL, ['f', [tensor([1]), new Ref(3n), tensor([2])]]))
    expect(message.tensors.map(elements)).toEqual([[1], [2]])
    expect(message.body[1]).toEqual([message.tensors[0], new Ref(3n), message.tensors[1]])
    expect(elements(nested[0]?.tensors[0])).toEqual([7])
  })

  test('that stumble over bytes of others are a damaged frame', () => {
    const picky: ValueExtension = { ...extension, encode: () => null, decode: (plain) => (plain as { no: { such: 1 } }).no.such }
    const extended = new Codec({ extensions: [picky] })
    const frame = carried(extended, MessageType.RESULT, [new Ref(1n)])
    expect(() => extended.decode(frame)).toThrow(expect.objectContaining({ code: 'WIRE_CORRUPT' }))
  })

  test('need a tag of their own', () => {
    expect(() => new Codec({ extensions: [extension, extension] })).toThrow(expect.objectContaining({ code: 'WIRE_UNSUPPORTED_VALUE' }))
    expect(() => new Codec({ extensions: [{ ...extension, tag: 3 }] })).toThrow(expect.objectContaining({ code: 'WIRE_UNSUPPORTED_VALUE' }))
  })
})
