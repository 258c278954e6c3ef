/** Three training steps of the main job's program, small, as one value that is equal only bit by bit: simulated, inlined and on threads. */

import { SENTENCES } from './fixtures/sentences.js'
import type { TrainOptions, TrainReport } from './program.js'
import { encode } from './text.js'

export function threeSteps(): TrainOptions {
  const [batch, sequence] = [4, 6]
  const corpus = encode({ characters: SENTENCES, source: 'sentences', prompt: 'the ' }, { heldOutMax: 200, batch, sequence })
  return {
    alphabet: corpus.alphabet.length,
    embedding: 5,
    hidden: 12,
    text: corpus.training,
    heldOut: corpus.heldOut,
    batch,
    sequence,
    learningRate: 1,
    momentum: 0.9,
    steps: 3,
    seconds: 0,
    measurements: 1,
    seed: 3,
    prompt: corpus.prompt,
    sampleLength: 12,
  }
}

/** Losses as their 64 bits, and what was sampled, which hangs on every weight. */
export function bitsOf({ training, heldOut, before, after }: TrainReport): Record<string, unknown> {
  const bits = (loss: number) => Buffer.from(Float64Array.of(loss).buffer).toString('hex')
  return {
    training: training.map(({ loss }) => bits(loss)),
    heldOut: [heldOut[0]!, heldOut.at(-1)!].map(({ loss }) => bits(loss)),
    before: [...before],
    after: [...after],
  }
}
