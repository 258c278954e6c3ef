/**
 * Death at every step, one by one: an `Atomics` of this test stops the dying worker at its n-th access to a shared word, for every n.
 * Turmoil terminates threads at random; this test covers all places, in one thread.
 */
import { afterEach, expect, test } from '@jest/globals'
import { Heap, type HeapBlock, type HeapDescriptor } from './heap.js'
import { epochOf, SLOT_LIVE, slotState } from './layout.js'
import { RESERVED_BYTES_MIN } from './shared-memory.js'
import { SEGMENT_BYTES } from './size-classes.js'
import { verifyHeap } from './verify.js'

const real = { ...pick(Atomics) }

function pick(from: typeof Atomics) {
  const { load, store, add, and, or, compareExchange } = from
  return { load, store, add, and, or, compareExchange }
}

class Death extends Error {}

/** Runs `fn` until its n-th access, which does not happen any more. @returns false when it has ended before */
function diesAt(n: number, fn: () => void): boolean {
  let left = n
  for (const [name, method] of Object.entries(real)) {
    Object.assign(Atomics, {
      [name]: (...args: unknown[]) => {
        if (left-- === 0) throw new Death()
        return (method as (...args: unknown[]) => unknown)(...args)
      },
    })
  }
  try {
    fn()
    return false
  } catch (error) {
    if (error instanceof Death) return true
    throw error
  } finally {
    Object.assign(Atomics, real)
  }
}

afterEach(() => {
  Object.assign(Atomics, real)
})

/**
 * The workers: `dying` is in the middle of something; `other` has blocks of its own, which are on their way to `dying`, and some of `dying`'s
 * and of `fourth`'s; `third` survives too.
 */
interface Scene {
  readonly dying: Heap
  readonly other: Heap
  readonly third: Heap
  readonly fourth: Heap
  readonly mine: HeapBlock[]
  readonly arriving: HeapDescriptor[]
  /** Of `other`, for what is arriving. */
  readonly tokens: number[]
}

function pass(block: HeapBlock, from: Heap, to: Heap): HeapBlock {
  const { descriptor, token } = from.share(block)
  const adopted = to.adopt(descriptor)
  from.acknowledge(token)
  return adopted
}

function scene(): Scene {
  const third = Heap.create({ reservedBytes: RESERVED_BYTES_MIN, limitBytes: 60 * SEGMENT_BYTES })
  const dying = Heap.attach(third.handle()!)
  const other = Heap.attach(third.handle()!)
  const fourth = Heap.attach(third.handle()!)
  const mine = [5000, 5000, 40_000, 400_000, 400_000].map((bytes) => dying.allocate(bytes)!)
  const others = [5000, 70_000, 600_000].map((bytes) => other.allocate(bytes)!)
  const fourths = [5000, 5000, 300_000, 400_000].map((bytes) => fourth.allocate(bytes)!)
  fourth.release(fourth.allocate(500_000)!)
  pass(mine[0]!, dying, other)
  pass(mine[3]!, dying, other)
  pass(fourths[0]!, fourth, other)
  pass(fourths[2]!, fourth, other)
  const sent = others.map((block) => other.share(block))
  return { dying, other, third, fourth, mine, arriving: sent.map(({ descriptor }) => descriptor), tokens: sent.map(({ token }) => token) }
}

const ACTIONS: Record<string, (scene: Scene) => void> = {
  'allocates a small block': ({ dying }) => void dying.allocate(5000),
  'allocates a small block in a new segment': ({ dying }) => void dying.allocate(20_000),
  'allocates a run': ({ dying }) => void dying.allocate(1_000_000),
  'finds no room': ({ dying }) => void dying.allocate(60 * SEGMENT_BYTES),
  'takes scratch': ({ dying }) => void (dying.scratch(10_000) + dying.scratch(1_000_000)),
  releases: ({ dying, mine }) => {
    for (const block of mine) dying.release(block)
  },
  'releases and trims': ({ dying, mine }) => {
    for (const block of mine) dying.release(block)
    dying.trim()
  },
  'sends, and takes back': ({ dying, mine }) => {
    for (const { token } of mine.map((block) => dying.share(block))) dying.acknowledge(token)
  },
  receives: ({ dying, arriving }) => {
    for (const descriptor of arriving) dying.release(dying.adopt(descriptor))
  },
  'joins another thread': ({ dying }) => void dying.handle(),
  'reclaims a fourth': ({ dying, fourth }) => void dying.reclaim(fourth),
  'takes over what a fourth has left': ({ dying }) => void dying.allocate(60 * SEGMENT_BYTES),
}

test.each(Object.keys(ACTIONS))('HEAP-7 a worker may die at any access while it %s', (name) => {
  let steps = 0
  const problems: string[] = []
  for (let n = 0; ; n++) {
    const at = scene()
    const { dying, other, third, fourth, tokens } = at
    if (name.startsWith('takes over')) third.reclaim(fourth)
    const died = diesAt(n, () => ACTIONS[name]!(at))
    if (!died) break
    steps++
    // `fourth` is dead as well, and who had just got a handle: all but the two survivors.
    if (!third.reclaim(dying)) problems.push(`step ${n}: reclaim refused`)
    for (const [slot, word] of third.words.slotStates().entries()) {
      if (slot === third.slot || slot === other.slot || slotState(word) !== SLOT_LIVE) continue
      third.reclaim({ slot, epoch: epochOf(word) })
    }
    for (const token of tokens) other.acknowledge(token)
    const holdings = [other, third].map((heap) => ({ slot: heap.slot, held: heap.audit() }))
    problems.push(...verifyHeap(third.words, holdings).map((problem) => `step ${n}: ${problem}`))
    // Everything can be had again.
    for (const { id, references } of other.audit()) {
      const block = { id, generation: 0, address: 0, capacityBytes: other.words.capacityOf(id) }
      for (let i = 0; i < references; i++) other.release(block)
    }
    other.trim()
    third.words.walk((segment) => problems.push(`step ${n}: segment ${segment} is still claimed`))
  }
  expect(problems.slice(0, 5)).toEqual([])
  expect(steps).toBeGreaterThan(name === 'joins another thread' ? 3 : 5)
})
