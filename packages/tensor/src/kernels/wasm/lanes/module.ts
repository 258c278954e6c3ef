/**
 * Makes a module of WebAssembly of a few formulas: one function that reads each source once, computes all of them in registers, and writes the results that are
 * wanted. It goes over four elements at a time, then over the rest one by one with the same instructions, so that a value's bits never depend on its place.
 */

/** One function. Its parameters are the number of elements, an address for each input and each output, and all p0 and p1 that formulas read. */
export interface LanesProgram {
  /** 'f': float32; 'b': bool; 's': one float32 for all elements. */
  readonly inputs: readonly ('f' | 'b' | 's')[]
  /** The operands are numbers of inputs, then of formulas. */
  readonly formulas: readonly { readonly text: string; readonly operands: readonly number[] }[]
  /** Which formulas are written, and whether as bool. */
  readonly outputs: readonly { readonly formula: number; readonly isBool: boolean }[]
}

/** Instructions of vectors that take their operands from the stack alone. */
const VECTOR: Readonly<Record<string, number>> = {
  'f32x4.eq': 0x41,
  'f32x4.ne': 0x42,
  'f32x4.lt': 0x43,
  'f32x4.gt': 0x44,
  'f32x4.le': 0x45,
  'v128.and': 0x4e,
  'v128.andnot': 0x4f,
  'v128.bitselect': 0x52,
  'f32x4.ceil': 0x67,
  'f32x4.floor': 0x68,
  'f32x4.trunc': 0x69,
  'f32x4.nearest': 0x6a,
  'f32x4.abs': 0xe0,
  'f32x4.neg': 0xe1,
  'f32x4.sqrt': 0xe3,
  'f32x4.add': 0xe4,
  'f32x4.sub': 0xe5,
  'f32x4.mul': 0xe6,
  'f32x4.div': 0xe7,
  'f32x4.min': 0xe8,
  'f32x4.max': 0xe9,
  'f32x4.pmax': 0xeb,
}
const LOAD = 0x00
const LOAD8_SPLAT = 0x07
const LOAD32_SPLAT = 0x09
const STORE = 0x0b
const CONST = 0x0c
const F32_SPLAT = 0x13
const I32_NE = 0x38
const STORE8_LANE = 0x58
const STORE32_LANE = 0x5a
const LOAD32_ZERO = 0x5c
const NARROW16 = 0x65
const NARROW32 = 0x85
const EXTEND8 = 0x89
const EXTEND16 = 0xa9

const [I32, F32, V128] = [0x7f, 0x7d, 0x7b]

/** The name of the only export. */
export const RUN = 'run'

export function moduleOf(program: LanesProgram): Uint8Array {
  const { inputs, outputs, formulas } = program
  const parameters = [
    I32,
    ...inputs.map(() => I32),
    ...outputs.map(() => I32),
    ...formulas.flatMap(({ text }) => parametersOf(text).map(() => F32)),
  ]
  const code = new Body(program, parameters.length).bytes
  return new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, ...list(parameters), 0]),
    // The heap's memory: shared, of at most 4 GiB.
    ...section(2, [1, ...text('env'), ...text('memory'), 2, 3, 0, ...unsigned(65_536)]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...text(RUN), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ])
}

/** The parameters that a formula reads, in their order. */
export function parametersOf(formula: string): ('p0' | 'p1')[] {
  const words = formula.split(' ')
  return (['p0', 'p1'] as const).filter((name) => words.includes(name))
}

/** How a body goes through the elements: one vector, at so many bytes from the place of the loop, or one element. */
type Stride = 'single' | 0 | 16

class Body {
  readonly bytes: readonly number[]
  readonly #program: LanesProgram
  readonly #code: number[] = []
  /** Locals: bytes of whole vectors, bytes of all elements, bytes done; then vectors: parameters of formulas, sources that are one element, inputs, formulas. */
  readonly #whole: number
  readonly #all: number
  readonly #done: number
  readonly #numbers: number
  readonly #inputs: number
  readonly #formulas: number

  constructor(program: LanesProgram, parameters: number) {
    this.#program = program
    const { inputs, outputs, formulas } = program
    this.#whole = parameters
    this.#all = parameters + 1
    this.#done = parameters + 2
    this.#numbers = parameters + 3
    const numbers = formulas.reduce((sum, { text }) => sum + parametersOf(text).length, 0)
    this.#inputs = this.#numbers + numbers
    this.#formulas = this.#inputs + inputs.length
    for (let k = 0; k < numbers; k++)
      this.#add(0x20, 1 + inputs.length + outputs.length + k)
        .#vector(F32_SPLAT)
        .#add(0x21, this.#numbers + k)
    for (const [k, kind] of inputs.entries()) {
      if (kind === 's')
        this.#add(0x20, 1 + k)
          .#memory(LOAD32_SPLAT, 0)
          .#add(0x21, this.#inputs + k)
    }
    this.#add(0x20, 0, 0x41).#signed(2).#op(0x74).#add(0x21, this.#all)
    this.#add(0x20, this.#all, 0x41).#signed(-32).#op(0x71).#add(0x21, this.#whole)
    this.#loop(this.#whole, 32, () => {
      this.#each(0)
      this.#each(16)
    })
    this.#add(0x20, this.#all, 0x41).#signed(-16).#op(0x71).#add(0x21, this.#whole)
    this.#loop(this.#whole, 16, () => this.#each(0))
    this.#loop(this.#all, 4, () => this.#each('single'))
    this.#op(0x0b)
    const locals = [2, 3, I32, ...unsigned(numbers + inputs.length + formulas.length), V128]
    this.bytes = [...locals, ...this.#code]
  }

  /** while (done < end) { body; done += bytes } */
  #loop(end: number, bytes: number, body: () => void): void {
    this.#op(0x02, 0x40, 0x03, 0x40)
    this.#add(0x20, this.#done).#add(0x20, end).#op(0x4f, 0x0d, 1)
    body()
    this.#add(0x20, this.#done, 0x41).#signed(bytes).#op(0x6a).#add(0x21, this.#done).#op(0x0c, 0, 0x0b, 0x0b)
  }

  #each(at: Stride): void {
    const { inputs, outputs, formulas } = this.#program
    for (const [k, kind] of inputs.entries()) {
      if (kind === 's') continue
      this.#address(1 + k, kind === 'b')
      if (kind === 'f') this.#memory(at === 'single' ? LOAD32_SPLAT : LOAD, at === 'single' ? 0 : at)
      else {
        this.#memory(at === 'single' ? LOAD8_SPLAT : LOAD32_ZERO, at === 'single' ? 0 : at / 4)
        this.#vector(EXTEND8).#vector(EXTEND16).#number(0).#vector(I32_NE)
      }
      this.#add(0x21, this.#inputs + k)
    }
    let number = this.#numbers
    for (const [k, { text, operands }] of formulas.entries()) {
      const parameters = parametersOf(text)
      for (const word of text.split(' ')) {
        const operand = 'abc'.indexOf(word)
        if (operand >= 0) {
          const from = operands[operand]!
          this.#add(0x20, from < inputs.length ? this.#inputs + from : this.#formulas + from - inputs.length)
        } else if (word === 'p0' || word === 'p1') this.#add(0x20, number + parameters.indexOf(word))
        else if (word === '0' || word === '1') this.#number(Number(word))
        else this.#vector(VECTOR[word]!)
      }
      number += parameters.length
      this.#add(0x21, this.#formulas + k)
    }
    for (const [k, { formula, isBool }] of outputs.entries()) {
      this.#address(1 + inputs.length + k, isBool)
      this.#add(0x20, this.#formulas + formula)
      if (isBool) {
        // Each mask becomes a byte, 0 or 1.
        this.#vector(CONST)
          .#op(...[0, 1, 2, 3].flatMap(() => [1, 0, 0, 0]))
          .#vector(VECTOR['v128.and']!)
        this.#add(0x22, this.#formulas + formula)
          .#add(0x20, this.#formulas + formula)
          .#vector(NARROW32)
        this.#add(0x22, this.#formulas + formula)
          .#add(0x20, this.#formulas + formula)
          .#vector(NARROW16)
      }
      if (at !== 'single' && !isBool) this.#memory(STORE, at)
      else this.#memory(at === 'single' && isBool ? STORE8_LANE : STORE32_LANE, at === 'single' ? 0 : at / 4).#op(0)
    }
  }

  /** Bytes of bools are a quarter of those of float32. */
  #address(parameter: number, isBool: boolean): void {
    this.#add(0x20, parameter).#add(0x20, this.#done)
    if (isBool) this.#add(0x41).#signed(2).#op(0x76)
    this.#op(0x6a)
  }

  /** In all lanes. */
  #number(value: number): this {
    const bytes = [...new Uint8Array(new Float32Array([value]).buffer)]
    return this.#vector(CONST).#op(...[0, 1, 2, 3].flatMap(() => bytes))
  }

  #vector(code: number): this {
    return this.#op(0xfd, ...unsigned(code))
  }

  /** A load or a store, aligned to single bytes. */
  #memory(code: number, offset: number): this {
    return this.#vector(code).#op(0, ...unsigned(offset))
  }

  /** Instructions of one byte with a number each, as in pairs of opcode and local. */
  #add(...pairs: number[]): this {
    for (let i = 0; i < pairs.length; i += 2) {
      this.#code.push(pairs[i]!)
      if (i + 1 < pairs.length) this.#code.push(...unsigned(pairs[i + 1]!))
    }
    return this
  }

  #signed(value: number): this {
    return this.#op(...signed(value))
  }

  #op(...bytes: number[]): this {
    this.#code.push(...bytes)
    return this
  }
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content]
}

function list(items: readonly number[]): number[] {
  return [...unsigned(items.length), ...items]
}

function text(name: string): number[] {
  return list([...name].map((letter) => letter.charCodeAt(0)))
}

/** LEB128. */
function unsigned(value: number): number[] {
  const bytes: number[] = []
  let left = value
  do {
    bytes.push(left >= 128 ? (left % 128) + 128 : left)
    left = Math.floor(left / 128)
  } while (left > 0)
  return bytes
}

/** LEB128 of numbers from −64 to 63. */
function signed(value: number): number[] {
  return [value & 0x7f]
}
