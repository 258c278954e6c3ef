/** Text into numbers: alphabet, cut, prompt, and the unigram distribution's loss against values made by hand. */
import { describe, expect, test } from '@jest/globals'
import { encode, unigramLoss } from './text.js'

const cut = { heldOutMax: 1000, batch: 4, sequence: 4 }
const text = (characters: string, prompt: string | null = null) => ({ characters, source: 'a test', prompt })

describe('unigramLoss', () => {
  test('the value made by hand: add-one frequencies of the training text, mean over the held-out text', () => {
    // Training aab: counts 2, 1, 0, with one more of each 3, 2, 1 of 6. Held out: a, b, c.
    const loss = unigramLoss({ alphabet: ['a', 'b', 'c'], training: Int32Array.of(0, 0, 1), heldOut: Int32Array.of(0, 1, 2) })
    expect(loss).toBeCloseTo((Math.log(6 / 3) + Math.log(6 / 2) + Math.log(6 / 1)) / 3, 12)
  })

  test('is the entropy of a text that goes on as it began', () => {
    const training = Int32Array.from({ length: 40_000 }, (_, i) => (i % 4 === 0 ? 1 : 0))
    const entropy = -(0.75 * Math.log(0.75) + 0.25 * Math.log(0.25))
    expect(unigramLoss({ alphabet: ['a', 'b'], training, heldOut: training.slice(0, 400) })).toBeCloseTo(entropy, 4)
  })
})

describe('encode', () => {
  test('the alphabet is sorted, rare characters share its last symbol', () => {
    const corpus = encode(text(`${'cab'.repeat(1000)}x${'b'.repeat(2000)}`), cut)
    expect(corpus.alphabet).toEqual(['a', 'b', 'c', '\u{fffd}'])
    expect([...corpus.training.slice(0, 3)]).toEqual([2, 0, 1])
    expect(corpus.training[3000]).toBe(3)
  })

  test('characters outside of the basic plane are one symbol', () => {
    const { alphabet, training } = encode(text('🙂a'.repeat(400)), cut)
    expect(alphabet).toEqual(['a', '🙂', '\u{fffd}'])
    expect([...training.slice(0, 4)]).toEqual([1, 0, 1, 0])
  })

  test('the end is held out, in whole windows of all streams and one follower', () => {
    const { training, heldOut } = encode(text('ab'.repeat(1000)), cut)
    expect(training).toHaveLength(1900)
    // 100 characters, 4 streams of 24 read in windows of 4.
    expect(heldOut).toHaveLength(4 * 24 + 1)
    expect(encode(text('ab'.repeat(1000)), { ...cut, heldOutMax: 50 }).heldOut).toHaveLength(4 * 12 + 1)
  })

  test('the prompt is given, or the beginning of what is held out', () => {
    expect([...encode(text('ab'.repeat(1000), 'ba?'), cut).prompt]).toEqual([1, 0, 2])
    const { prompt, heldOut } = encode(text('ab'.repeat(1000)), cut)
    expect([...prompt]).toEqual([...heldOut.slice(0, 24)])
  })

  test.each([0, 1, 99])('%d characters are too few', (length) => {
    expect(() => encode(text('a'.repeat(length)), cut)).toThrow(
      expect.objectContaining({ code: 'TEXT_TOO_SHORT', values: { source: 'a test', characters: length, least: 100 } }),
    )
  })

  test('the least text that is enough', () => {
    const { training, heldOut } = encode(text('a'.repeat(100)), cut)
    expect([training.length, heldOut.length]).toEqual([95, 5])
  })
})
