/** MessagePack as a tree that can be changed and written again, also with wrong counts. It shares no code with the codec. */
import { bytesOf, EDGES, joined, pick, type Random, utf8 } from './case.suite.js'

interface Leaf {
  readonly raw: Uint8Array
}

interface Tree {
  readonly isMap: boolean
  readonly items: Node[]
  /** The count that is written is so much off. */
  lie: number
}

export type Node = Leaf | Tree

const isTree = (node: Node): node is Tree => 'items' in node
const raw = (...bytes: number[]): Node => ({ raw: Uint8Array.from(bytes) })
const list = (...items: Node[]): Node => ({ isMap: false, items, lie: 0 })

const PAYLOADS: Readonly<Record<number, number>> = { 203: 8, 204: 1, 205: 2, 206: 4, 207: 8, 208: 1, 209: 2, 210: 4, 211: 8 }

/** The tree of what a codec of ours wrote. */
export function parse(bytes: Uint8Array): Node {
  let at = 0
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const one = (): Node => {
    const start = at
    const token = bytes[at++] as number
    const many = (count: number, isMap: boolean): Node => {
      const items: Node[] = []
      for (let i = 0; i < (isMap ? 2 * count : count); i++) items.push(one())
      return { isMap, items, lie: 0 }
    }
    const sized = (width: number): number => {
      const size = width === 1 ? view.getUint8(at) : width === 2 ? view.getUint16(at) : view.getUint32(at)
      at += width
      return size
    }
    if (token >= 0x80 && token < 0x90) return many(token - 0x80, true)
    if (token >= 0x90 && token < 0xa0) return many(token - 0x90, false)
    if (token === 0xdc || token === 0xdd) return many(sized(token === 0xdc ? 2 : 4), false)
    if (token === 0xde || token === 0xdf) return many(sized(token === 0xde ? 2 : 4), true)
    if (token >= 0xa0 && token < 0xc0) at += token - 0xa0
    else if (token >= 0xd9 && token <= 0xdb) {
      const length = sized(2 ** (token - 0xd9))
      at += length
    } else at += PAYLOADS[token] ?? 0
    return { raw: bytes.slice(start, at) }
  }
  return one()
}

export function write(node: Node, out: Uint8Array[] = []): Uint8Array[] {
  if (!isTree(node)) {
    out.push(node.raw)
    return out
  }
  const { isMap, items, lie } = node
  const count = (isMap ? items.length >> 1 : items.length) + lie
  if (count >= 0 && count < 16) out.push(Uint8Array.of((isMap ? 0x80 : 0x90) + count))
  else if (count >= 0 && count < 65_536) out.push(Uint8Array.of(isMap ? 0xde : 0xdc, count >> 8, count & 255))
  else out.push(Uint8Array.of(isMap ? 0xdf : 0xdd, (count >> 24) & 255, (count >> 16) & 255, (count >> 8) & 255, count & 255))
  for (const item of items) write(item, out)
  return out
}

const copyOf = (node: Node): Node => (isTree(node) ? { ...node, items: node.items.map(copyOf) } : node)

function integer(n: number): Node {
  if (n >= 0 && n < 128) return raw(n)
  if (n < 256) return raw(0xcc, n)
  return raw(0xce, (n >>> 24) & 255, (n >>> 16) & 255, (n >>> 8) & 255, n & 255)
}

function float(n: number): Node {
  const bytes = new Uint8Array(9)
  bytes[0] = 0xcb
  new DataView(bytes.buffer).setFloat64(1, n)
  return { raw: bytes }
}

function text(value: string): Node {
  const bytes = utf8(value).subarray(0, 31)
  return { raw: joined([Uint8Array.of(0xa0 + bytes.length), bytes]) }
}

const TEXTS = ['', 'f', '__proto__', 'constructor', 'toString', 'then', 'length', '-ff', 'a+', '(?:', 'g', 'gg', 'PostgradError']

/** A value of any kind, special ones of the wire among them, in their forms and in others. */
export function anyNode(random: Random, depth = 0): Node {
  switch (random.below(depth > 3 ? 9 : 14)) {
    case 0:
      return raw(pick(random, [0xc0, 0xc2, 0xc3]))
    case 1:
    case 2:
      return integer(random.below(40))
    case 3:
      return integer(pick(random, EDGES))
    case 4:
      return float(pick(random, [-1, 0.5, 2 ** 53, 2 ** 53 - 1, -(2 ** 40), Number.NaN, Number.POSITIVE_INFINITY, 1e300]))
    case 5:
      return { raw: joined([Uint8Array.of(pick(random, [0xcf, 0xd3])), bytesOf(random, 8)]) }
    case 6:
    case 7:
      return text(pick(random, TEXTS))
    case 8:
      return { raw: bytesOf(random, 1 + random.below(3)) }
    case 9:
      return {
        isMap: true,
        items: Array.from({ length: 2 * random.below(4) }, (_, i) =>
          i % 2 === 0 ? text(pick(random, TEXTS)) : anyNode(random, depth + 1),
        ),
        lie: 0,
      }
    case 10:
      return list(...Array.from({ length: random.below(5) }, () => anyNode(random, depth + 1)))
    default: {
      const tag = random.below(0x42)
      const length = pick(random, [0, 1, 2, 2, 3, 4, 6, 7, 8, 11, 13])
      return list(raw(0xc0), integer(tag), ...Array.from({ length }, () => anyNode(random, depth + 1)))
    }
  }
}

/** One change somewhere in the tree. `other` is where pieces come from. */
export function changed(random: Random, tree: Node, other: Node): Node {
  const root = copyOf(tree)
  let at = root
  // Down to somewhere.
  while (isTree(at) && at.items.length > 0 && random.below(4) > 0) {
    const next = pick(random, at.items)
    if (!isTree(next)) break
    at = next
  }
  if (!isTree(at)) return anyNode(random)
  const { items } = at
  const place = random.below(items.length + 1)
  switch (random.below(9)) {
    case 0:
      items.splice(place, 1)
      break
    case 1:
      items.splice(place, 0, anyNode(random))
      break
    case 2:
      if (items.length > 0) items.push(pick(random, items))
      break
    case 3:
      items.splice(place, 1, pieceOf(random, other))
      break
    case 4:
      at.lie = pick(random, [-1, 1, 2, 15, 65_535, 2 ** 31, 2 ** 32 - 1 - items.length])
      break
    case 5: {
      let deep = anyNode(random)
      for (let i = pick(random, [1, 5, 100, 125, 128, 130, 400]); i > 0; i--) deep = list(deep)
      items.splice(place, 1, deep)
      break
    }
    default:
      items.splice(place, 1, anyNode(random))
  }
  return root
}

function pieceOf(random: Random, tree: Node): Node {
  let at = tree
  while (isTree(at) && at.items.length > 0 && random.below(4) > 0) at = pick(random, at.items)
  return at
}
