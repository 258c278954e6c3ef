/**
 * The pieces of an SVG that all pictures of `docs/pictures` share: two palettes, text, arrows, and the page around them. A picture is drawn once for each palette, and
 * names colours only by their role. Widths of text are estimates, since no font is measured here.
 */
import assert from 'node:assert/strict'

/** By role. `paper` is the page that the picture is read on: the picture itself is transparent. */
export const PALETTES = {
  light: {
    paper: '#ffffff',
    ink: '#1f2328',
    soft: '#57606a',
    line: '#8c959f',
    box: '#f3f5f8',
    call: '#0550ae',
    result: '#0a6b3d',
    gradient: '#a2400b',
    pass: '#6f3cc4',
    error: '#b42318',
    callFill: '#dcebff',
    resultFill: '#d9f3e3',
    gradientFill: '#ffe6d6',
    passFill: '#ece3fd',
    errorFill: '#fde2df',
  },
  dark: {
    paper: '#1b1b1f',
    ink: '#e8e8ee',
    soft: '#a9b0bc',
    line: '#6f7683',
    box: '#26272d',
    call: '#86b9ff',
    result: '#74d99f',
    gradient: '#ffb27d',
    pass: '#c7a8ff',
    error: '#ff9a90',
    callFill: '#16304f',
    resultFill: '#143c28',
    gradientFill: '#4a2a12',
    passFill: '#35265c',
    errorFill: '#4d1f1b',
  },
}

/** Roles whose text is read on the page, and on each of these fills. */
const TEXTS = ['ink', 'soft', 'call', 'result', 'gradient', 'pass', 'error']
const FILLS = ['box', 'callFill', 'resultFill', 'gradientFill', 'passFill', 'errorFill']
const CONTRAST_MIN = 4.5

for (const [name, palette] of Object.entries(PALETTES)) {
  for (const text of TEXTS) assert(contrast(palette[text], palette.paper) >= CONTRAST_MIN, `${name}: ${text} on the page`)
  for (const fill of FILLS) assert(contrast(palette.ink, palette[fill]) >= CONTRAST_MIN, `${name}: ink on ${fill}`)
  for (const fill of ['box', 'gradientFill']) assert(contrast(palette.error, palette[fill]) >= CONTRAST_MIN, `${name}: error on ${fill}`)
}

/** WCAG 2.2, contrast ratio. */
export function contrast(one, other) {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a)
  return (high + 0.05) / (low + 0.05)
}

function luminance(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

/** About how wide a text of this size is. */
export const widthOf = (text, size) => text.length * size * 0.53

export function text(x, y, words, { size = 13, fill, anchor = 'middle', weight = 400 }) {
  const bold = weight === 400 ? '' : ` font-weight="${weight}"`
  return `<text x="${round(x)}" y="${round(y)}" font-size="${size}"${bold} text-anchor="${anchor}" fill="${fill}">${escaped(words)}</text>`
}

export function rect(x, y, width, height, { fill = 'none', stroke = 'none', radius = 4, dash = '', wide = 1 }) {
  const dashed = dash === '' ? '' : ` stroke-dasharray="${dash}"`
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${radius}" fill="${fill}" stroke="${stroke}" stroke-width="${wide}"${dashed}/>`
}

/** A line; with `arrow`, its head is at the second point. */
export function line(x1, y1, x2, y2, { stroke, arrow = false, dash = '', wide = 1.5, opacity = 1 }) {
  const dashed = dash === '' ? '' : ` stroke-dasharray="${dash}"`
  const faint = opacity === 1 ? '' : ` stroke-opacity="${opacity}"`
  const stem = `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="${stroke}" stroke-width="${wide}"${dashed}${faint}/>`
  if (!arrow) return stem
  const angle = Math.atan2(y2 - y1, x2 - x1)
  const point = (along, across) =>
    `${round(x2 - along * Math.cos(angle) + across * Math.sin(angle))} ${round(y2 - along * Math.sin(angle) - across * Math.cos(angle))}`
  return `${stem}<path d="M${point(0, 0)}L${point(9, 4.5)}L${point(9, -4.5)}Z" fill="${stroke}"/>`
}

/** The whole file. `title` and `desc` are what a screen reader says. */
export function page({ width, height, title, desc, parts }) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title desc" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="desc">${escaped(desc)}</desc>`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

export function round(number) {
  return Math.round(number * 10) / 10
}

export function escaped(words) {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
