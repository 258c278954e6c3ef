/**
 * The text that the model learns: read, turned into numbers, cut into a part to train on and one that is held out. By default it is
 * postgrad's own sources and documents.
 */
import { existsSync } from 'node:fs'
import { open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PostgradError } from 'postgrad'
import { streamsIn } from './streams.js'

/** Characters read at most: enough for minutes of training. */
const CHARS_MAX = 1_500_000
/** UTF-8 takes at most so many bytes for a character of a JavaScript string. */
const BYTES_PER_CHAR_MAX = 3
/** Characters rarer than this share one symbol, so that the embedding stays small; in a short text, than this share of it. */
const OCCURRENCES_MIN = 20
const OCCURRENCES_MIN_SHARE = 1 / 1000
const UNKNOWN = '\u{fffd}'
const HELD_OUT_SHARE = 0.05
const PROMPT_CHARS = 24

export interface Text {
  readonly characters: string
  /** Where it came from, for a reader. */
  readonly source: string
  /** The beginning of samples; null: that of the held-out part. */
  readonly prompt: string | null
}

export interface Corpus {
  readonly source: string
  /** Symbol of each index; the last one is for every rare character. */
  readonly alphabet: readonly string[]
  readonly training: Int32Array
  readonly heldOut: Int32Array
  /** Samples begin with it. */
  readonly prompt: Int32Array
}

export interface Cut {
  /** Characters that are held out at most. */
  readonly heldOutMax: number
  /** Streams and characters in which the held-out part is read: it has whole windows. */
  readonly batch: number
  readonly sequence: number
}

/** Mean cross-entropy, in nats per character, of the held-out text under the character frequencies of the training text. */
export function unigramLoss({ alphabet, training, heldOut }: Pick<Corpus, 'alphabet' | 'training' | 'heldOut'>): number {
  // One occurrence more of each: a character that the training text lacks must not have the probability 0.
  const counts = new Float64Array(alphabet.length).fill(1)
  for (const symbol of training) counts[symbol]!++
  const total = training.length + alphabet.length
  let sum = 0
  for (const symbol of heldOut) sum -= Math.log(counts[symbol]! / total)
  return sum / heldOut.length
}

/** @throws TEXT_TOO_SHORT */
export function encode({ characters, source, prompt }: Text, { heldOutMax, batch, sequence }: Cut): Corpus {
  const all = Array.from(characters)
  // The held-out part and the training part each have a window and its last follower.
  const least = Math.ceil((sequence + 1) / HELD_OUT_SHARE)
  if (all.length < least) {
    throw new PostgradError('TEXT_TOO_SHORT', {
      op: 'char-lm',
      message: `${source} has ${all.length} characters, at least ${least} are needed`,
      remedy: 'Pass a longer text, or a smaller --sequence.',
      values: { source, characters: all.length, least },
    })
  }
  const alphabet = alphabetOf(all)
  const indexOf = new Map(alphabet.map((c, i) => [c, i]))
  const symbols = (from: Iterable<string>) => Int32Array.from(from, (c) => indexOf.get(c) ?? alphabet.length - 1)
  const numbers = symbols(all)
  const share = Math.max(sequence + 1, Math.floor(numbers.length * HELD_OUT_SHARE))
  const { streams, windows } = streamsIn(Math.min(share, heldOutMax), batch, sequence)
  const cut = numbers.length - share
  const heldOut = numbers.slice(cut, cut + streams * windows * sequence + 1)
  return {
    source,
    alphabet,
    training: numbers.slice(0, cut),
    heldOut,
    prompt: prompt === null ? heldOut.slice(0, PROMPT_CHARS) : symbols(prompt),
  }
}

function alphabetOf(characters: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const c of characters) counts.set(c, (counts.get(c) ?? 0) + 1)
  const least = Math.min(OCCURRENCES_MIN, characters.length * OCCURRENCES_MIN_SHARE)
  const common = [...counts].filter(([c, count]) => count >= least && c !== UNKNOWN).map(([c]) => c)
  return [...common.sort(), UNKNOWN]
}

/** The beginning of a file. @throws TEXT_UNREADABLE when it is missing, or no text in UTF-8 */
export async function readText(file: string): Promise<Text> {
  const bytes = await readBeginning(file, CHARS_MAX * BYTES_PER_CHAR_MAX)
  let characters: string
  try {
    // As a stream: what is cut at the end may be half a character.
    characters = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true }).slice(0, CHARS_MAX)
  } catch (cause) {
    throw unreadable(file, 'is not a text in UTF-8', 'Pass a text file; iconv converts other encodings.', cause)
  }
  if (characters.includes('\0')) throw unreadable(file, 'is a binary file', 'Pass a text file.')
  return { characters, source: file, prompt: null }
}

async function readBeginning(file: string, bytesMax: number): Promise<Uint8Array> {
  try {
    const handle = await open(file)
    try {
      const buffer = new Uint8Array(bytesMax)
      let length = 0
      while (length < bytesMax) {
        const { bytesRead } = await handle.read(buffer, length, bytesMax - length)
        if (bytesRead === 0) break
        length += bytesRead
      }
      return buffer.subarray(0, length)
    } finally {
      await handle.close()
    }
  } catch (cause) {
    const { code } = cause as { code?: string }
    const why = code === 'ENOENT' ? 'does not exist' : code === 'EISDIR' ? 'is a folder' : `cannot be read (${(cause as Error).message})`
    throw unreadable(file, why, 'Check the path.', cause)
  }
}

function unreadable(file: string, why: string, remedy: string, cause?: unknown): PostgradError {
  return new PostgradError('TEXT_UNREADABLE', { op: '--data', message: `${file} ${why}`, remedy, values: { file }, cause })
}

/** The folders of the repository, or of the installed package, which has declarations in place of sources. */
const FOLDERS = [
  ['packages', 'apps', 'scripts'],
  ['dist/types', 'docs', 'examples'],
]

/** postgrad's own sources and documents, in a fixed order that mixes the packages. @param root the top folder of the repository, or of the package */
export async function ownText(root: string): Promise<Text> {
  const files: string[] = []
  const folders = FOLDERS.find((all) => all.every((folder) => existsSync(join(root, folder)))) ?? []
  for (const folder of folders) await collect(join(root, folder), files)
  for (const entry of await readdir(root)) if (entry.endsWith('.md')) files.push(join(root, entry))
  files.sort()
  // The end is held out, so it should resemble the rest.
  const mixed = files.map((file, i) => [Math.imul(i + 1, 0x9e3779b1) >>> 0, file] as const).sort(([a], [b]) => a - b)
  let characters = ''
  for (const [, file] of mixed) {
    characters += await readFile(file, 'utf8')
    if (characters.length > CHARS_MAX) break
  }
  return { characters: characters.slice(0, CHARS_MAX), source: "postgrad's sources and documents", prompt: 'export function ' }
}

async function collect(folder: string, into: string[]): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name === 'node_modules' || entry.name === 'dist' || entry.name === 'golden') continue
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await collect(path, into)
    else if (/\.(ts|mjs|md)$/.test(entry.name)) into.push(path)
  }
}
