/** The text of a progress bar, for a terminal and for a file. Nothing here writes: `progress-bar.ts` does. */

/** The state of a bar. */
export interface Shown {
  readonly label: string
  readonly done: number
  readonly total: number | null
  readonly unit: string
  /** Seconds since the bar began. */
  readonly seconds: number
  /** Units per second; null: not known yet, or not wanted. */
  readonly rate: number | null
  /** Metrics, or a text of the program. */
  readonly postfix: string
}

const BAR_COLUMNS_MAX = 24
const BAR_COLUMNS_MIN = 4
const FULL = '█'
/** Eighths of a column. */
const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const

/** One line of at most `columns` columns of a terminal: `epoch 1  42% ███▍    | 42/100 [00:10<00:14, 4.20 it/s] loss 0.31`. The bar gives way first, then the end of the line. */
export function barText(shown: Shown, columns: number): string {
  const { label, done, total, postfix } = shown
  const head = label === '' ? '' : `${label} `
  const end = `${countText(shown)} [${timesText(shown)}]${postfix === '' ? '' : ` ${postfix}`}`
  if (total === null) return cut(head + end, columns)
  const percent = `${String(percentOf(done, total)).padStart(3)}% `
  const room = Math.min(BAR_COLUMNS_MAX, columns - columnsOf(head) - percent.length - columnsOf(end) - 2)
  const bar = room < BAR_COLUMNS_MIN ? '' : `${bars(done / total, room)}| `
  return cut(head + percent + bar + end, columns)
}

/** The same for a file: `epoch 1 42%: loss 0.31 (42/100, 4.20 it/s, 00:14 left)`. */
export function lineText(shown: Shown): string {
  const { label, done, total, rate, unit, postfix } = shown
  const name = label === '' ? '' : `${label} `
  const begin = total === null ? `${name}${countText(shown)}` : `${name}${percentOf(done, total)}%`
  const facts = [
    ...(total === null || rate === null ? [] : [countText(shown)]),
    ...(rate === null ? [] : [rateText(rate, unit)]),
    ...(leftOf(shown) === null ? [] : [`${clockText(leftOf(shown)!)} left`]),
  ]
  const brackets = facts.length === 0 ? '' : ` (${facts.join(', ')})`
  return inOneLine(postfix === '' ? `${begin}${brackets}` : `${begin}: ${postfix}${brackets}`)
}

/** `loss 0.3125, accuracy 0.91`: four digits. */
export function metricsText(metrics: Readonly<Record<string, number | string>>): string {
  return Object.entries(metrics)
    .map(([name, value]) => `${name} ${typeof value === 'number' ? Number(value.toPrecision(4)) : value}`)
    .join(', ')
}

function percentOf(done: number, total: number): number {
  return total === 0 ? 100 : Math.floor((100 * Math.min(done, total)) / total)
}

function countText({ done, total, unit }: Shown): string {
  const text = (x: number): string => (Number.isInteger(x) ? String(x) : x.toFixed(1))
  return total === null ? `${text(done)} ${unit}` : `${text(done)}/${text(total)}`
}

function timesText(shown: Shown): string {
  const left = leftOf(shown)
  const times = clockText(shown.seconds) + (left === null ? '' : `<${clockText(left)}`)
  return shown.rate === null ? times : `${times}, ${rateText(shown.rate, shown.unit)}`
}

/** Seconds. */
function leftOf({ done, total, rate }: Shown): number | null {
  return total === null || rate === null || rate === 0 ? null : Math.max(0, total - done) / rate
}

function rateText(rate: number, unit: string): string {
  return rate >= 1 || rate === 0 ? `${digits(rate)} ${unit}/s` : `${digits(1 / rate)} s/${unit}`
}

const digits = (x: number): string => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2))

/** 00:14, or 1:02:03. */
function clockText(seconds: number): string {
  const whole = Math.round(seconds)
  const two = (x: number): string => String(x).padStart(2, '0')
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60]
  return `${hours > 0 ? `${hours}:` : ''}${two(minutes)}:${two(whole % 60)}`
}

function bars(share: number, columns: number): string {
  const eighths = Math.floor(Math.min(1, Math.max(0, share)) * columns * 8)
  return (FULL.repeat(eighths >> 3) + PARTS[eighths & 7]!).padEnd(columns)
}

function cut(text: string, columns: number): string {
  const line = inOneLine(text)
  if (line.length <= columns && !/[^ -~]/.test(line)) return line
  let [end, used] = [0, 0]
  for (const character of line) {
    used += widthOf(character)
    if (used > columns) break
    end += character.length
  }
  return line.slice(0, end)
}

/** A text of the program may have line breaks and tabs, whose width depends on their place. */
const inOneLine = (text: string): string => text.replaceAll(/[\t-\r\x85\u2028\u2029]/g, ' ')

const columnsOf = (text: string): number => [...inOneLine(text)].reduce((sum, character) => sum + widthOf(character), 0)

/** Unicode's East Asian wide and fullwidth characters, and emoji; by blocks, so some narrow ones count as wide. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{20000}-\u{3fffd}\p{Emoji_Presentation}\p{Extended_Pictographic}]/u
/** Accents, joiners and the like, which a terminal draws into the character before. */
const NO_COLUMN = /[\p{Mn}\p{Me}\p{Cf}]/u

const widthOf = (character: string): number => (WIDE.test(character) ? 2 : NO_COLUMN.test(character) ? 0 : 1)
