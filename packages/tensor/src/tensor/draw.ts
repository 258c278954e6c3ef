/** Fills tensors with a generator's next numbers: many by a kernel, with the numbers and the state that drawing one by one gives. */
import { CPU } from '../heap/memory.js'
import { elementOf, INT32_SPAN, type TypedArray } from '../values/dtype.js'
import type { Generator, GeneratorState } from '../values/generator.js'
import { kernelsAt } from './device.js'
import { Tensor } from './tensor.js'

/** From this many numbers on a kernel draws them: it saves more than the state's way there and back costs. */
const MANY = 80

/** `count` numbers from element `from` on. @param spare the generator's afterwards */
function drawMany(out: Tensor, draw: 'uniform' | 'normal', from: number, count: number, generator: Generator, spare: number | null): void {
  const words = Int32Array.from(generator.state().words)
  kernelsAt(CPU)[draw][out.dtype](words, out, from, count)
  generator.restore({ words: [...words], spare })
}

/** Uniform numbers in [0, 1), or standard normal ones. out is a whole storage of the cpu, of float32 or float64. */
export function drawReals(out: Tensor, draw: 'uniform' | 'normal', generator: Generator): void {
  const { dtype, numel } = out
  const array = out.storage.host!
  if (numel < MANY) {
    for (let i = 0; i < numel; i++) {
      array[i] = draw === 'normal' ? generator.normal() : dtype === 'float32' ? generator.uniform() : generator.uniform64()
    }
    return
  }
  const { spare }: GeneratorState = generator.state()
  if (draw === 'uniform') {
    drawMany(out, draw, 0, numel, generator, spare)
    return
  }
  // The second of a pair that was begun comes first, and what is left of an odd number begins another.
  const from = spare === null ? 0 : 1
  if (spare !== null) array[0] = spare
  const rest = (numel - from) % 2
  drawMany(out, draw, from, numel - from - rest, generator, null)
  if (rest === 1) array[numel - 1] = generator.normal()
}

/** The integers from low to high − 1 that `generator.integer` would draw. out is a whole storage of the cpu. */
export function drawIntegers(out: Tensor, low: number, high: number, generator: Generator): void {
  const { dtype, shape, numel } = out
  const array = out.storage.host!
  if (numel < MANY || high - low > INT32_SPAN) {
    for (let i = 0; i < numel; i++) array[i] = elementOf(dtype, generator.integer(low, high))
  } else if (dtype === 'int32') drawFrom(out, low, high - low, generator)
  else {
    const whole = Tensor.uninitialized('int32', shape, CPU)
    drawFrom(whole, 0, high - low, generator)
    const drawn = whole.storage.host!
    for (let i = 0; i < numel; i++) array[i] = elementOf(dtype, drawn[i]! + low)
  }
}

/** From low to low + range − 1, into an int32 tensor. */
function drawFrom(out: Tensor, low: number, range: number, generator: Generator): void {
  const array = out.storage.host as Int32Array
  const { spare } = generator.state()
  // Numbers from here on would make small remainders more likely: others are drawn for them.
  const end = 2 ** 32 - (2 ** 32 % range)
  const inverse = 1 / range
  for (let made = 0; made < array.length; ) {
    const from = made
    drawMany(out, 'uniform', from, array.length - from, generator, spare)
    for (let i = from; i < array.length; i++) {
      const drawn = array[i]! + 2 ** 31
      if (drawn >= end) continue
      // The quotient may be one off where it is nearly whole.
      const rest = drawn - Math.floor(drawn * inverse) * range
      array[made++] = (rest < 0 ? rest + range : rest >= range ? rest - range : rest) + low
    }
  }
}

/** A permutation draws so many numbers at a time. */
const BLOCK = 4096

/** The numbers from 0 on in the order that `generator.integer(0, i + 1)` for each place i would give: Fisher and Yates, from the inside out. */
export function drawPermutation(array: TypedArray, generator: Generator): void {
  const n = array.length
  if (n < MANY) {
    for (let i = 0; i < n; i++) put(array, i, generator.integer(0, i + 1))
    return
  }
  const { spare } = generator.state()
  const block = Tensor.uninitialized('int32', [Math.min(BLOCK, n)], CPU)
  const drawn = block.storage.host as Int32Array
  for (let i = 0; i < n; ) {
    const count = Math.min(BLOCK, n - i)
    drawMany(block, 'uniform', 0, count, generator, spare)
    for (let k = 0; k < count; k++) {
      const number = (drawn[k]! ^ 0x80000000) >>> 0
      const rest = number % (i + 1)
      // As in drawFrom: a number beyond the last whole range is passed over.
      if (number - rest + i < 2 ** 32) put(array, i++, rest)
    }
  }
}

/** i comes to place j, and the number of that place to place i. */
function put(array: TypedArray, i: number, j: number): void {
  array[i] = array[j]!
  array[j] = i
}
