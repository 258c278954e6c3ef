/**
 * The text that the model learns: read, turned into numbers, cut into a part to train on and one to evaluate on. By default it is this
 * repository's own source and documents.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Characters read at most: enough for minutes of training. */
const CHARS_MAX = 1_500_000
/** Characters rarer than this share one symbol, so that the embedding stays small. */
const OCCURRENCES_MIN = 20
const UNKNOWN = '\u{fffd}'
const EVALUATION_SHARE = 0.05

export interface Corpus {
  /** Symbol of each index; the last one stands for every rare character. */
  readonly alphabet: readonly string[]
  readonly training: Int32Array
  readonly evaluation: Int32Array
  /** Where the text came from, for a reader. */
  readonly source: string
}

/** Mean cross-entropy, in nats per character, of the evaluation text under the character frequencies of the training text. */
export function unigramLoss({ alphabet, training, evaluation }: Corpus): number {
  const counts = new Float64Array(alphabet.length).fill(1)
  for (const symbol of training) counts[symbol]!++
  const total = training.length + alphabet.length
  let sum = 0
  for (const symbol of evaluation) sum -= Math.log(counts[symbol]! / total)
  return sum / evaluation.length
}

export async function readCorpus(file: string | undefined, repository: string): Promise<Corpus> {
  const text = file === undefined ? await repositoryText(repository) : (await readFile(file, 'utf8')).slice(0, CHARS_MAX)
  return encode(text, file ?? "this repository's source and documents")
}

export function encode(text: string, source: string): Corpus {
  const characters = Array.from(text)
  const counts = new Map<string, number>()
  for (const c of characters) counts.set(c, (counts.get(c) ?? 0) + 1)
  const common = [...counts].filter(([, count]) => count >= Math.min(OCCURRENCES_MIN, characters.length / 1000)).map(([c]) => c)
  const alphabet = [...common.sort(), UNKNOWN]
  const indexOf = new Map(alphabet.map((c, i) => [c, i]))
  const symbols = Int32Array.from(characters, (c) => indexOf.get(c) ?? alphabet.length - 1)
  const cut = Math.floor(symbols.length * (1 - EVALUATION_SHARE))
  return { alphabet, training: symbols.slice(0, cut), evaluation: symbols.slice(cut), source }
}

async function repositoryText(root: string): Promise<string> {
  const files: string[] = []
  for (const folder of ['packages', 'apps', 'scripts']) await collect(join(root, folder), files)
  for (const entry of await readdir(root)) if (entry.endsWith('.md')) files.push(join(root, entry))
  files.sort()
  // Files in a fixed, mixed order: the part at the end, which is evaluated on, then resembles the rest.
  files.sort((a, b) => spread(a.length * 31 + files.indexOf(a)) - spread(b.length * 31 + files.indexOf(b)))
  let text = ''
  for (const file of files) {
    text += await readFile(file, 'utf8')
    if (text.length > CHARS_MAX) break
  }
  return text.slice(0, CHARS_MAX)
}

function spread(n: number): number {
  return Math.imul(n + 1, 0x9e3779b1) >>> 0
}

async function collect(folder: string, into: string[]): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name === 'node_modules' || entry.name === 'dist' || entry.name === 'golden') continue
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await collect(path, into)
    else if (/\.(ts|mjs|md)$/.test(entry.name)) into.push(path)
  }
}
