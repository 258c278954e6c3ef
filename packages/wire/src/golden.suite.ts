/**
 * One message of every type, and values of every kind, as frames: the wire format in examples. `golden/wire.json` holds their bytes;
 * `scripts/golden/wire.mjs` writes that file again, so a change of the format shows in review.
 */
import { PostgradError } from '@postgrad/base'
import { SparseTensor, tensor } from '@postgrad/tensor'
import { Codec } from './codec.js'
import type { OutgoingMessage } from './message.js'
import { MESSAGE_TABLE, type MessageBodies, MessageType } from './message-type.js'

const A = (1n << 48n) | 1n
const B = (2n << 48n) | 7n

function stacked<E extends Error>(error: E): E {
  error.stack = `${error.name}: ${error.message}\n    at step (program.js:1:1)`
  return error
}

function failure(): Error {
  const cause = stacked(new TypeError('x is not a function'))
  return stacked(
    new PostgradError('SHAPE_MISMATCH', {
      op: 'add',
      expected: '[2, 3]',
      got: '[3]',
      remedy: 'Reshape it.',
      values: { shape: [3] },
      cause,
    }),
  )
}

const x = tensor([
  [1, 2, 3],
  [4, 5, 6],
])

/** A body of each type. */
export const BODIES: { readonly [T in MessageType]: MessageBodies[T] } = {
  [MessageType.CALL]: ['myAdd', [x, 2]],
  [MessageType.RESULT]: [x.T],
  [MessageType.EXCEPTION]: [failure(), false],
  [MessageType.REMOTE_CALL]: ['Observer', [{ seed: 1 }], A, B],
  [MessageType.REMOTE_RET]: [A, B, null],
  [MessageType.RREF_FETCH]: [A],
  [MessageType.RREF_USER_DELETE]: [A, B],
  [MessageType.RREF_FORK_REQUEST]: [A, B],
  [MessageType.RREF_CHILD_ACCEPT]: [B],
  [MessageType.RREF_ACK]: [B],
  [MessageType.UNREADABLE]: [7],
  [MessageType.CALL_CANCEL]: [70_000, true],
  [MessageType.STREAM_ITEM]: [{ frame: x }],
  [MessageType.GROUP_UPDATE]: [3, [0, [[1, 2, 3]]], null],
  [MessageType.PROPAGATE_GRADIENTS]: [[null, x, null], 1],
  [MessageType.PASS_REPORT]: [
    3,
    2,
    [
      [1, 2],
      [65535, 1],
    ],
    1,
    [[A, 1, "the call of 'f'"]],
  ],
  [MessageType.PASS_ERROR]: [failure()],
  [MessageType.PASS_ABORT]: [failure()],
  [MessageType.CLEANUP_CONTEXT]: [],
  [MessageType.PASS_COMMIT]: [],
  [MessageType.LINEAGE]: [],
  [MessageType.ACTOR_DOWN]: [7, false, failure()],
  [MessageType.ACTOR_UNWATCH]: [7],
  [MessageType.PROGRESS]: [300, 8192, 70_000, 5, 200, [[5, 16]]],
  [MessageType.DEVICE_MAP]: [[['gpu', 'gpu:1']]],
  [MessageType.COLLECTIVE]: [A, 0, 7, 1, 'allReduce(sum) float32 [2, 3]', [x], null],
}

const VALUES: Readonly<Record<string, unknown>> = {
  primitives: [
    null,
    undefined,
    true,
    false,
    0,
    -0,
    1,
    -1,
    127,
    128,
    65535,
    65536,
    2 ** 32,
    -(2 ** 31),
    0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
  ],
  bigints: [0n, -1n, 2n ** 63n, 2n ** 64n - 1n, 2n ** 64n, -(2n ** 70n)],
  strings: ['', 'a', 'ä€😀', '\ud800', '\ufeffbom', 'x'.repeat(40)],
  arrays: [[], [[]], [null], [null, 0]],
  objects: [{}, { a: 1, b: { c: [] } }, JSON.parse('{"__proto__": 1}')],
  date: new Date(0),
  regexp: /a+/giu,
  map: new Map<unknown, unknown>([
    ['k', 1],
    [{ key: true }, undefined],
  ]),
  set: new Set([1, 'a']),
  buffers: [
    new ArrayBuffer(2),
    new Uint8Array([1, 2, 3]),
    new Float64Array([0.5]),
    new BigInt64Array([-1n]),
    new DataView(new ArrayBuffer(1)),
  ],
  error: failure(),
  aggregate: stacked(new AggregateError([stacked(new RangeError('a')), 'b'], 'both')),
  dtypes: [tensor([1]), tensor([1], { dtype: 'float64' }), tensor([1], { dtype: 'int32' }), tensor([true, false])],
  sparse: new SparseTensor(
    tensor([2, 0, 2], { dtype: 'int32' }),
    tensor([
      [1, 2],
      [3, 4],
      [5, 6],
    ]),
    [4, 2],
  ),
  shapes: [tensor(1), tensor([]), tensor([[[1]]])],
}

export interface GoldenCase {
  readonly name: string
  make(codec: Codec): OutgoingMessage
  /** Sent in place of the message. */
  readonly failure?: Error
}

export const GOLDEN_CASES: readonly GoldenCase[] = [
  ...Object.entries(MessageType).map(([name, type]) => ({
    name,
    make(codec: Codec) {
      const message = codec.prepare(type, BODIES[type])
      message.requestId = 5
      for (const id of MESSAGE_TABLE[type].ids) message[id] = A
      return message
    },
  })),
  {
    name: 'CALL with the whole envelope',
    make(codec) {
      const message = codec.prepare(MessageType.CALL, ['f', [x]])
      message.requestId = 300
      message.requiresGrad = [true]
      message.context = A
      message.autogradId = B
      message.pass = A
      message.deadlineMs = 1500.5
      message.trace = { id: 1 }
      message.lineage = [1, 2]
      return message
    },
  },
  {
    name: 'PROPAGATE_GRADIENTS with lineage',
    make(codec) {
      const message = codec.prepare(MessageType.PROPAGATE_GRADIENTS, [[x], 0])
      return Object.assign(message, { context: A, autogradId: B, pass: A, lineage: [3, 2 ** 40] })
    },
  },
  {
    name: 'CALL that has failed',
    make: (codec) => Object.assign(codec.prepare(MessageType.CALL, ['f', [x]]), { requestId: 300, context: A, autogradId: B }),
    failure: failure(),
  },
  {
    name: 'CALL with more than cells hold',
    make: (codec) => codec.prepare(MessageType.CALL, ['f', [Array.from({ length: 300 }, (_, i) => i)]]),
  },
  {
    name: 'RESULT with a tensor of its own segment',
    make: (codec) => codec.prepare(MessageType.RESULT, [tensor(Array.from({ length: 1025 }, (_, i) => i))]),
  },
  ...Object.entries(VALUES).map(([name, value]) => ({
    name: `RESULT of ${name}`,
    make: (codec: Codec) => codec.prepare(MessageType.RESULT, [value]),
  })),
]

export function goldenCodec(): Codec {
  return new Codec({ worker: { name: 'worker1', id: 1 } })
}

/** The frame of each case, by name: header and segments in hexadecimal, a long segment by its length and first bytes. */
export function goldenFrames(): Record<string, string[]> {
  const codec = goldenCodec()
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
  return Object.fromEntries(
    GOLDEN_CASES.map(({ name, make, failure: error }) => {
      const message = make(codec)
      const { header, segments } = error === undefined ? codec.encode(message) : codec.encodeFailure(message, error)
      return [name, [hex(header), ...segments.map((bytes) => `${bytes.length} bytes: ${hex(bytes.subarray(0, 32))}…`)]]
    }),
  )
}
