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

/** One line of at most `columns` characters: `epoch 1  42% ███▍    | 42/100 [00:10<00:14, 4.20 it/s] loss 0.31`. The bar gives way first, then the end of the line. */
export function barText(shown: Shown, columns: number): string {
  const { label, done, total, postfix } = shown
  const head = label === '' ? '' : `${label} `
  const end = `${countText(shown)} [${timesText(shown)}]${postfix === '' ? '' : ` ${postfix}`}`
  if (total === null) return cut(head + end, columns)
  const percent = `${String(percentOf(done, total)).padStart(3)}% `
  const room = Math.min(BAR_COLUMNS_MAX, columns - head.length - percent.length - end.length - 2)
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
  return postfix === '' ? `${begin}${brackets}` : `${begin}: ${postfix}${brackets}`
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
  return text.length <= columns ? text : text.slice(0, Math.max(0, columns))
}
