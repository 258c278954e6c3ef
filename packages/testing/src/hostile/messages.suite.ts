/**
 * Messages of every type: trees of values that are changed anywhere, and cells; wrong counts, parts and segments of other lengths, damaged bytes. As from a
 * socket: no message names a block of a heap, neither without a transport, nor with one that takes bytes alone.
 */
import { PostgradError } from '@postgrad/base'
import { SparseTensor, type Tensor, tensor, zeros } from '@postgrad/tensor'
import { Heap, HeapRoom, HeapTransport, isTensor } from '@postgrad/tensor/internal'
import { Codec, MESSAGE_TABLE, type MessageBodies, MessageType, SentFailure, WIRE_VERSION } from '@postgrad/wire/internal'
import {
  bytesOf,
  EDGES,
  type Input,
  joined,
  mutated,
  type Outcome,
  pick,
  promised,
  type Random,
  refusedWith,
  type Target,
} from './case.suite.js'
import { anyNode, changed, type Node, parse, write } from './packed.suite.js'

const PREFIX_BYTES = 4
const TYPE_AT = 4
const FLAGS_AT = 5
const COUNT_AT = 6
const HEAD_BYTES_MIN = 16
const PACKED = 0x20
const A = (1n << 48n) | 1n
const B = (2n << 48n) | 7n
const x = tensor([
  [1, 2, 3],
  [4, 5, 6],
])
const large = zeros([1100])
const failure = () =>
  new PostgradError('SHAPE_MISMATCH', {
    op: 'add',
    expected: '[2]',
    got: '[3]',
    remedy: 'Reshape it.',
    values: { shape: [3] },
    cause: new TypeError('x'),
  })
const values = (): readonly unknown[] => [
  null,
  undefined,
  -0,
  2n ** 70n,
  '\ud800',
  [null, 0],
  JSON.parse('{"__proto__": 1, "a": {"b": []}}'),
  new Date(0),
  /a+/giu,
  new Map<unknown, unknown>([['k', 1]]),
  new Set([1, 'a']),
  new Uint8Array([1, 2, 3]),
  new Float64Array(600),
  failure(),
  new AggregateError([new RangeError('a'), 'b'], 'both'),
  tensor([true, false]),
  large,
  new SparseTensor(tensor([2, 0], { dtype: 'int32' }), tensor([[1], [2]]), [4, 1]),
]

const BODIES: { readonly [T in MessageType]: readonly MessageBodies[T][] } = {
  [MessageType.CALL]: [
    ['f', [x, 2]],
    ['f', values()],
  ],
  [MessageType.RESULT]: [[x], [values()]],
  [MessageType.EXCEPTION]: [[failure(), true]],
  [MessageType.REMOTE_CALL]: [['Observer', [{ seed: 1 }, large], A, B]],
  [MessageType.REMOTE_RET]: [[A, B, null]],
  [MessageType.RREF_FETCH]: [[A]],
  [MessageType.RREF_USER_DELETE]: [[A, B]],
  [MessageType.RREF_FORK_REQUEST]: [[A, B]],
  [MessageType.RREF_CHILD_ACCEPT]: [[B]],
  [MessageType.RREF_ACK]: [[B]],
  [MessageType.UNREADABLE]: [[7]],
  [MessageType.CALL_CANCEL]: [[70_000, true]],
  [MessageType.STREAM_ITEM]: [[{ frame: x }]],
  [MessageType.GROUP_UPDATE]: [
    [3, [0, [[1, 2, 3]]], null],
    [8, [1, [true, [['7', [1], 5]], [[1, 2, 3]]]], null],
  ],
  [MessageType.PROPAGATE_GRADIENTS]: [[[null, x, null], 1]],
  [MessageType.PASS_REPORT]: [[3, 2, [[1, 2]], 1, [[A, 1, 'f']]]],
  [MessageType.PASS_ERROR]: [[failure()]],
  [MessageType.PASS_ABORT]: [[failure()]],
  [MessageType.CLEANUP_CONTEXT]: [[]],
  [MessageType.PASS_COMMIT]: [[]],
  [MessageType.LINEAGE]: [[]],
  [MessageType.ACTOR_DOWN]: [[7, false, failure()]],
  [MessageType.ACTOR_UNWATCH]: [[7]],
  [MessageType.PROGRESS]: [[300, 8192, 70_000, 5, 200, [[5, 16]]]],
  [MessageType.DEVICE_MAP]: [[[['gpu', 'gpu:1']]]],
  [MessageType.COLLECTIVE]: [
    [A, 0, 7, 1, 'allReduce(sum) float32 [2, 3]', [x, large], null],
    [A, 2, 7, 0, '', values(), failure()],
  ],
}

interface Seed {
  /** The bytes before the body, without the prefix. */
  readonly head: Uint8Array
  /** The body, where it is packed. */
  readonly tree: Node | null
  /** The body, where it is not. */
  readonly cells: Uint8Array
  /** After the packed values. */
  readonly parts: Uint8Array
  readonly segments: readonly Uint8Array[]
}

function seedsOf(): readonly Seed[] {
  const codec = new Codec()
  const seeds: Seed[] = []
  for (const type of Object.values(MessageType)) {
    for (const body of BODIES[type] as readonly (readonly unknown[])[]) {
      for (const form of ['plain', 'whole', 'packed'] as const) {
        const message = codec.prepare(type, body)
        message.requestId = 5
        for (const id of MESSAGE_TABLE[type].ids) message[id] = A
        if (form !== 'plain')
          Object.assign(message, { context: A, autogradId: B, pass: A, deadlineMs: 100, trace: [1n, { id: 'x' }], lineage: [1, 2, 3] })
        // Cells have no room for such a lineage.
        if (form === 'packed') message.lineage = new Array<number>(2100).fill(1)
        const { header, segments } = codec.encode(message)
        const own = Uint8Array.from(header)
        const end = PREFIX_BYTES + ((own[0] as number) | ((own[1] as number) << 8) | ((own[2] as number) << 16))
        const flags = own[FLAGS_AT] as number
        // A lineage of these seeds has one cell, if it is here.
        let bodyAt = HEAD_BYTES_MIN + 8 * Math.ceil((own[COUNT_AT] as number) / 8)
        for (let bit = 1; bit < 0x10; bit *= 2) if ((flags & bit) !== 0) bodyAt += 8
        const bytes = own.slice(bodyAt, end)
        const isPacked = (flags & PACKED) !== 0
        seeds.push({
          head: own.slice(PREFIX_BYTES, bodyAt),
          tree: isPacked ? parse(bytes) : null,
          cells: isPacked ? new Uint8Array(0) : bytes,
          parts: own.slice(end),
          segments: segments.map((one) => Uint8Array.from(one)),
        })
      }
    }
  }
  return seeds
}

export class Messages implements Target {
  readonly name = 'messages'
  readonly share = 25
  /** By the names of messages: how many were taken and refused. */
  readonly met = new Map<string, number>()
  private readonly seeds = seedsOf()
  private readonly codec = new Codec()
  private readonly transport = new HeapTransport(Heap.create({ reservedBytes: 2 ** 20 }), new HeapRoom())

  make(random: Random): Input {
    const seed = pick(random, this.seeds)
    let { head, parts, segments } = seed
    let body = seed.tree === null ? this.changedCells(random, seed.cells) : this.changedTree(random, seed.tree)
    if (random.below(6) === 0) body = mutated(random, body)
    if (random.below(12) === 0) head = mutated(random, head)
    if (random.below(12) === 0) parts = mutated(random, parts)
    if (random.below(12) === 0)
      segments = pick(random, [
        segments.slice(1),
        [...segments, bytesOf(random, 8)],
        segments.map((one) => one.subarray(0, random.below(one.length + 1))),
      ])
    const length = random.below(20) === 0 ? random.below(2 ** 24) : head.length + body.length
    const header = joined([
      Uint8Array.of(length & 255, (length >> 8) & 255, (length >> 16) & 255, random.below(40) === 0 ? random.below(256) : WIRE_VERSION),
      head,
      body,
      parts,
    ])
    return [Uint8Array.of(random.below(2)), random.below(12) === 0 ? mutated(random, header) : header, ...segments]
  }

  private changedTree(random: Random, seed: Node): Uint8Array {
    let tree = seed
    if (random.below(20) === 0) tree = anyNode(random)
    else
      for (let hits = random.below(3); hits > 0; hits--) {
        const { tree: other } = pick(random, this.seeds)
        tree = changed(random, tree, other ?? anyNode(random))
      }
    return joined(write(tree))
  }

  /** Cells that are changed, added, left out, or come from elsewhere. */
  private changedCells(random: Random, seed: Uint8Array): Uint8Array {
    let cells = seed
    for (let hits = random.below(3); hits > 0; hits--) {
      const at = 8 * random.below(cells.length / 8 + 1)
      const rest = cells.subarray(at + 8 * random.below(2))
      const other = pick(random, this.seeds).cells
      const from = 8 * random.below(other.length / 8 + 1)
      const some = random.coin() ? other.subarray(from, from + 8 * random.below(4)) : anyCell(random)
      cells = joined([cells.subarray(0, at), some, rest])
    }
    return cells
  }

  feed([flags, header, ...segments]: Input): Outcome {
    const name = this.nameOf(header as Uint8Array)
    try {
      const frame = { header: Uint8Array.from(header as Uint8Array), segments: segments.map((one) => Uint8Array.from(one)) }
      const message = this.codec.decode(frame, null, (flags as Uint8Array)[0] === 1 ? this.transport : null)
      const { fields, ids } = MESSAGE_TABLE[message.type]
      promised(message.body.length === fields.length, 'a body of the fields of its type')
      for (const [i, [field, { check }]] of fields.entries()) promised(check(message.body[i]), `field ${field}`)
      for (const id of ids) promised(message[id] !== null, `an id as ${id}`)
      const bytes = frame.header.length + frame.segments.reduce((sum, one) => sum + one.length, 0)
      for (const one of message.tensors) promised(bytesIn(one) <= bytes, 'no tensor of more bytes than came')
      promised(this.transport.takenBytes === 0, 'no block is taken')
      this.note(`${name} taken`)
      return 'taken'
    } catch (error) {
      this.note(`${name} refused`)
      // The sender's own error, in place of the message.
      if (error instanceof SentFailure) return 'refused'
      return refusedWith(
        error,
        /^(WIRE_(CORRUPT|VERSION|UNKNOWN_TYPE|BAD_FIELD|UNKNOWN_VALUE|TOO_LARGE|TOO_DEEP)|HEAP_NOT_SHARED|DEVICE_UNKNOWN)$/,
      )
    }
  }

  /** One codec reads all of them, and a message that is right is still read right. */
  check(): void {
    const sender = new Codec()
    const { body } = this.codec.decode(sender.encode(sender.prepare(MessageType.CALL, ['f', [x, { a: [1, 'ä', null] }]])))
    const [got, plain] = body[1] as [Tensor, unknown]
    promised(body[0] === 'f' && isTensor(got) && got.toString() === x.toString(), 'a tensor as it was sent')
    promised(JSON.stringify(plain) === '{"a":[1,"ä",null]}', 'values as they were sent')
  }

  private note(key: string): void {
    this.met.set(key, (this.met.get(key) ?? 0) + 1)
  }

  private nameOf(header: Uint8Array): string {
    const type = header[TYPE_AT] as MessageType
    return Object.hasOwn(MESSAGE_TABLE, type) ? MESSAGE_TABLE[type].name : 'none'
  }
}

const bytesIn = (one: Tensor): number => (one.isSparse ? 0 : one.numel * { float32: 4, float64: 8, int32: 4, bool: 1 }[one.dtype])

/** A cell of any kind and count, or any number. */
function anyCell(random: Random): Uint8Array {
  const special = 8 | (random.below(0x42) << 8)
  const words = Int32Array.of(
    random.below(3) === 0 ? special : random.below(11),
    pick(random, [0, 1, 2, 3, random.below(300), ...EDGES, -1]),
  )
  if (random.below(4) === 0) return bytesOf(random, 8)
  const numbers = Float64Array.of(pick(random, [...EDGES, -1, 0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY]))
  return new Uint8Array((random.below(4) === 0 ? numbers : words).buffer)
}
