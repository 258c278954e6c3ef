/** Rows for a person to read: figures of one run next to each other, and the ratio to the limit. */
import type { Row } from './row.js'

const NAME_WIDTH = 90

export function tableHead(torch: string | null): string {
  const columns = [
    'unit'.padEnd(8),
    ...['ours', 'first', 'limit', 'ratio', 'aim', 'warm'].map((name) => name.padStart(10)),
    '  met',
    '  peers',
  ]
  return `${torch === null ? '' : `beside PyTorch ${torch}\n`}${'row'.padEnd(NAME_WIDTH)}${columns.join('')}`
}

export function rowText({ name, unit, ours, limit, peers, aim, met, warm, first }: Row): string {
  const figures = [
    number(ours),
    first === null ? '-' : number(first),
    number(limit),
    (ours / limit).toFixed(2),
    aim === null ? '-' : number(aim),
    warm === 0 ? 'cold' : warm.toLocaleString('en-US'),
  ]
    .map((text) => text.padStart(10))
    .join('')
  const others = Object.entries(peers).map(([peer, value]) => `${peer} ${number(value)}`)
  return `${name.padEnd(NAME_WIDTH)}${unit.padEnd(8)}${figures}  ${met === null ? ' - ' : met ? 'yes' : 'NO '}  ${others.join(', ')}`
}

function number(value: number): string {
  return value >= 1000 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(3)
}
