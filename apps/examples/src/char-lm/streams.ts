/**
 * A text as parallel streams: `count` places spread evenly over it. Each continues from window to window, so a recurrent state carried from one
 * window to the next has read the text before it.
 */
import { type Tensor, tensor } from 'postgrad'

export class Streams {
  private readonly text: Int32Array
  private readonly length: number
  private readonly places: number[]

  /**
   * @param length characters of a window; the text must be longer
   * @param offset of all places together, in 0…1 of the distance between two
   */
  constructor(text: Int32Array, count: number, length: number, offset = 0) {
    this.text = text
    this.length = length
    const distance = (text.length - 1) / count
    this.places = Array.from({ length: count }, (_, b) => this.wrapped(Math.floor((b + offset) * distance)))
  }

  /** The next window of every stream, time first: input [length, count], and each character's follower [length · count]. */
  next(): [input: Tensor, target: Tensor] {
    const { text, places, length } = this
    const count = places.length
    const input = new Int32Array(length * count)
    const target = new Int32Array(length * count)
    for (let b = 0; b < count; b++) {
      const from = places[b]!
      for (let t = 0; t < length; t++) {
        input[t * count + b] = text[from + t]!
        target[t * count + b] = text[from + t + 1]!
      }
      places[b] = this.wrapped(from + length)
    }
    return [tensor(input).reshape([length, count]), tensor(target)]
  }

  /** A window that would pass the end begins at the start instead. */
  private wrapped(place: number): number {
    return place + this.length < this.text.length ? place : 0
  }
}

/** How many streams of whole windows a text of `chars` characters has, at most `streamsMax`, and how many windows each. */
export function streamsIn(chars: number, streamsMax: number, length: number): { readonly streams: number; readonly windows: number } {
  const streams = Math.max(1, Math.min(streamsMax, Math.floor((chars - 1) / length)))
  return { streams, windows: Math.floor((chars - 1) / streams / length) }
}
