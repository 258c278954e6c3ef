/**
 * The state file of a worker: everything except tensors, as lines of JSON that are written and read one at a time, so that its size has no limit. `worker-file.ts` writes
 * it next to the worker's safetensors file, which has the tensors under the names used here.
 *
 *     {"worker":"worker0","generator":{…}}                                first line
 *     {"key":"best","kind":"value"}                                       then for each entry: its name and kind
 *     [["object"],"loss",0.5,"w",["tensor","best.w"],["end"]]             and its tokens, in as many lines as they need
 *
 * A text or number in a line is itself; a token that is a list is one of `Mark`. Numbers come back to the last bit: NaN, the infinities and −0, which JSON would lose, are texts.
 */
import type { SafetensorsFile } from '@postgrad/nn'
import { type GeneratorState, isTensor, type Tensor } from '@postgrad/tensor'
import { corrupt, unsupported } from './errors.js'

/** module: weights of a tree of modules; state: what `stateDict()` gives; value: tensors and plain data, given back when it is loaded. */
export type EntryKind = 'module' | 'state' | 'value'

/** A token other than a text, number, boolean or null. A `part` is the beginning of a text that the next token continues. */
type Mark = readonly ['list' | 'object' | 'end' | 'undefined'] | readonly ['tensor' | 'number' | 'bigint' | 'part', string]
type Token = string | number | boolean | null | Mark

/** The tensors of one worker's file, by their names in it. */
export type NamedTensors = Map<string, Tensor>

/** A line is about so long, in characters, and no text in it longer. */
const LINE_CHARACTERS = 1 << 20
/** The name that safetensors keeps for itself. */
const RESERVED = '__metadata__'

export interface StateHead {
  readonly worker: string
  readonly generator: GeneratorState
}

/** An entry of the file; no tree where it was not asked for. */
export interface SavedEntry {
  readonly key: string
  readonly kind: EntryKind
  readonly tree: Tree | null
}

export function headLine(head: StateHead): Uint8Array {
  return lineOf(head)
}

/**
 * The lines of one entry. Its tensors are put into `tensors`, named by `key` and their paths.
 * @throws CHECKPOINT_UNSUPPORTED, with the path, unless it is tensors and plain data
 */
export function entryLines(key: string, kind: EntryKind, value: unknown, tensors: NamedTensors): Uint8Array[] {
  const writer = new TreeWriter(tensors)
  try {
    writer.add(value, key)
  } catch (error) {
    // A file has no such limit, but the program's stack has.
    if (error instanceof RangeError) throw unsupported(key, 'data that is nested too deeply', 'Save it as a list.', error)
    throw error
  }
  return [lineOf({ key, kind }), ...writer.end()]
}

class TreeWriter {
  private readonly tensors: NamedTensors
  private readonly lines: Uint8Array[] = []
  private tokens: Token[] = []
  private characters = 0
  private readonly above = new Set<object>()

  constructor(tensors: NamedTensors) {
    this.tensors = tensors
  }

  add(value: unknown, path: string): void {
    if (isTensor(value)) this.tensor(value, path)
    else if (typeof value === 'string') this.text(value)
    else if (typeof value === 'number') this.number(value)
    else if (typeof value === 'boolean' || value === null) this.token(value, 5)
    else if (typeof value === 'bigint') this.marked('bigint', String(value))
    else if (value === undefined) this.token(['undefined'], 13)
    else if (typeof value === 'object') this.object(value, path)
    else throw unsupported(path, `a ${typeof value}`)
  }

  end(): Uint8Array[] {
    this.flush()
    return this.lines
  }

  private object(value: object, path: string): void {
    if (this.above.has(value)) throw unsupported(path, 'a value that contains itself')
    this.above.add(value)
    if (Array.isArray(value)) {
      this.token(['list'], 8)
      for (let i = 0; i < value.length; i++) this.add(value[i], `${path}.${i}`)
    } else {
      checkPlain(value, path)
      this.token(['object'], 10)
      for (const [key, each] of Object.entries(value)) {
        this.text(key)
        this.add(each, `${path}.${key}`)
      }
    }
    this.token(['end'], 7)
    this.above.delete(value)
  }

  private tensor(value: Tensor, path: string): void {
    if (value.isSparse) throw unsupported(path, 'a sparse tensor', 'Convert it with toDense().')
    // Two paths may read the same: { 'a.b': t, a: { b: u } }.
    let name = path
    for (let more = 2; this.tensors.has(name) || name === RESERVED; more++) name = `${path}~${more}`
    this.tensors.set(name, value.detach())
    this.marked('tensor', name)
  }

  private number(value: number): void {
    if (Number.isFinite(value) && !Object.is(value, -0)) this.token(value, 20)
    else this.marked('number', Object.is(value, -0) ? '-0' : String(value))
  }

  private marked(mark: 'tensor' | 'number' | 'bigint', text: string): void {
    this.token([mark, text], text.length + 16)
  }

  private text(text: string): void {
    let at = 0
    for (; text.length - at > LINE_CHARACTERS; at += LINE_CHARACTERS) {
      this.token(['part', text.slice(at, at + LINE_CHARACTERS)], LINE_CHARACTERS)
    }
    const rest = at === 0 ? text : text.slice(at)
    this.token(rest, rest.length + 3)
  }

  private token(token: Token, characters: number): void {
    this.tokens.push(token)
    this.characters += characters
    if (this.characters >= LINE_CHARACTERS) this.flush()
  }

  private flush(): void {
    if (this.tokens.length > 0) this.lines.push(lineOf(this.tokens))
    this.tokens = []
    this.characters = 0
  }
}

function checkPlain(value: object, path: string): void {
  const prototype = Object.getPrototypeOf(value) as object | null
  // An object of another realm has another Object.prototype, which has none itself.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return
  const remedy = 'Give it stateDict() and loadStateDict(), or save what it consists of.'
  throw unsupported(path, `an instance of ${value.constructor?.name}`, remedy)
}

interface Frame {
  readonly into: object
  readonly isList: boolean
  /** Of the value that comes next; null before it is known. */
  key: string | number | null
}

/** A value that is made of tokens, whose tensors are put into it later. */
export class Tree {
  /** Where tensors belong. */
  readonly tensors: { readonly into: object; readonly key: string | number; readonly name: string }[] = []
  private readonly root: unknown[] = []
  private readonly open: Frame[] = [{ into: this.root, isList: true, key: 0 }]
  private parts: string[] = []

  get isWhole(): boolean {
    return this.open.length === 1 && this.root.length === 1
  }

  /** The value, with tensors in those places only that `fill` has filled. */
  get value(): unknown {
    return this.root[0]
  }

  /** @throws TypeError for a token that cannot be here */
  add(token: Token): void {
    if (typeof token === 'object' && token !== null) this.marked(token[0], token[1] ?? '')
    else if (typeof token === 'string') this.text(token)
    else this.put(token)
  }

  /** Reads its tensors, and puts them into their places. */
  async fill(file: Pick<SafetensorsFile, 'tensor'>): Promise<unknown> {
    for (const { into, key, name } of this.tensors) set(into, key, await file.tensor(name))
    return this.value
  }

  private text(value: string): void {
    const text = this.parts.length === 0 ? value : this.parts.join('') + value
    this.parts = []
    const frame = this.frame()
    if (!frame.isList && frame.key === null) frame.key = text
    else this.put(text)
  }

  private marked(mark: Mark[0], text: string): void {
    if (mark === 'part') this.parts.push(text)
    else if (mark === 'list' || mark === 'object') this.begin(mark === 'list')
    else if (mark === 'number') this.put(Number(text))
    else if (mark === 'bigint') this.put(BigInt(text))
    else if (mark === 'undefined') this.put(undefined)
    else if (mark === 'tensor') {
      const { into } = this.frame()
      this.tensors.push({ into, key: this.put(null), name: text })
    } else {
      mark satisfies 'end'
      if (mark !== 'end' || this.open.length === 1) throw new TypeError(`a token that cannot be here: ${String(mark)}`)
      this.open.pop()
    }
  }

  private begin(isList: boolean): void {
    const into = isList ? [] : {}
    this.put(into)
    this.open.push({ into, isList, key: isList ? 0 : null })
  }

  private put(value: unknown): string | number {
    const frame = this.frame()
    const { key } = frame
    if (key === null) throw new TypeError('a value without its name')
    set(frame.into, key, value)
    frame.key = typeof key === 'number' ? key + 1 : null
    return key
  }

  private frame(): Frame {
    return this.open[this.open.length - 1]!
  }
}

/** Reads a state file; trees only of entries that are `wanted`. @throws CHECKPOINT_CORRUPT */
export async function readState(
  path: string,
  pieces: AsyncIterable<Uint8Array>,
  wanted: (kind: EntryKind) => boolean,
): Promise<{ readonly head: StateHead; readonly entries: readonly SavedEntry[] }> {
  let head: StateHead | null = null
  const entries: SavedEntry[] = []
  try {
    for await (const line of linesOf(pieces)) {
      const last = entries.at(-1)
      // Lines of tokens begin with a bracket, others with a brace.
      const isTokens = line[0] === 0x5b
      if (isTokens && last?.tree === null) continue
      const found: unknown = JSON.parse(line.toString())
      if (head === null) head = found as StateHead
      else if (isTokens) for (const token of found as Token[]) last!.tree!.add(token)
      else {
        const { key, kind } = found as SavedEntry
        entries.push({ key, kind, tree: wanted(kind) ? new Tree() : null })
      }
    }
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) throw corrupt(path, 'lines of a state', error.message, error)
    throw error
  }
  if (head === null || entries.some(({ tree }) => tree?.isWhole === false)) throw corrupt(path, 'a whole state', 'the beginning of one')
  return { head, entries }
}

async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let rest: Uint8Array[] = []
  for await (const piece of pieces) {
    let at = 0
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, at)) {
      yield Buffer.concat([...rest, piece.subarray(at, end)])
      rest = []
      at = end + 1
    }
    rest.push(piece.subarray(at))
  }
}

const NEWLINE = 0x0a

function lineOf(value: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}

function set(into: object, key: string | number, value: unknown): void {
  // As an object literal does, and not as an assignment, which would change the prototype.
  if (key === '__proto__') Object.defineProperty(into, key, { value, enumerable: true, configurable: true, writable: true })
  else (into as Record<string | number, unknown>)[key] = value
}
