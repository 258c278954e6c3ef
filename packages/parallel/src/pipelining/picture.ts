/**
 * Draws a pipeline's step as an SVG that any browser opens, light or dark as the reader has it: a row for each rank, a box for each action as wide as it took. Several drawings, such as plan and
 * measurement, are one below the other on one scale. A long step is wide, and scrolls. Written by hand as the sequence diagrams of package `sim` are, since no dependency that ships draws.
 *
 *     ▪ forward ▪ backward ▪ idle
 *     planned: 96 ms, 11 % idle
 *     rank 0  ▐0▐1▐2▐3▌      ▐ 0 ▐ 1 …               14 % idle, holds up to 4
 *     rank 1    ▐0▐1▐2▐3▌  ▐ 0 ▐ 1 ▐ …                8 % idle, holds up to 4
 *             0 ms     20 ms     40 ms
 *     measured: 110 ms, 15 % idle
 *     …
 */
import { actionText, isCommunication } from './action.js'
import type { PipelineSimulation, TimedAction } from './simulation.js'

/** One drawing of `drawPipeline`: a title, and the actions of each rank with their times. */
export interface PipelineDrawing {
  /** The text above the drawing. */
  readonly title: string
  /** The actions of each rank with their times, from `simulateSchedule` or `measuredSteps`. */
  readonly steps: PipelineSimulation
  /** The unit that is written after each time, such as 'ms'; default none. */
  readonly unit?: string
}

type Computation = 'F' | 'B' | 'I' | 'W'
const NAMES: Readonly<Record<Computation, string>> = { F: 'forward', B: 'backward', I: 'backward, inputs', W: 'backward, weights' }

const LEFT = 70
const RIGHT = 190
const PLOT_MIN = 900
/** A longer step has boxes too narrow for their numbers. */
const PLOT_MAX = 12_000
const ROW = 30
const BOX = 24
/** Of a box with a number of so many digits. */
const widthOf = (digits: number): number => 4 + 7 * digits
/** How wide boxes are on average at most, but in a picture of few. */
const BOX_MAX = 40
/** How far marks of the axis are apart at least. */
const TICK = 90
/** Stages of one rank differ in how strong their colour is. */
const STRENGTH_MIN = 0.4

/**
 * Draws pipelines one below the other, with one time scale. Returns the text of an SVG.
 * @example
 * const steps = simulateSchedule(pipelineSchedule('ZBVZeroBubble', { ranks: 4, microbatches: 8 }))
 * drawPipeline([{ title: 'ZBVZeroBubble', steps }]).slice(0, 4) // '<svg'
 */
export function drawPipeline(drawings: readonly PipelineDrawing[]): string {
  const plans = drawings.map(({ title, steps, unit = '' }) => ({ title, steps, unit: unit === '' ? '' : ` ${unit}`, rows: rowsOf(steps) }))
  const boxes = plans.flatMap(({ rows }) => rows.flat())
  const longest = Math.max(0, ...plans.map(({ steps }) => steps.duration))
  const plot = Math.round(
    plotWidth(
      plans.flatMap(({ rows }) => rows),
      longest,
    ),
  )
  const scale = longest > 0 ? plot / longest : 0
  const width = LEFT + plot + RIGHT
  const parts = [legend(boxes, Math.max(0, ...plans.map(({ rows }) => rows.length)), 28)]
  let y = 72
  for (const { title, steps, unit, rows } of plans) {
    const { duration, bubble } = steps
    const from = Math.min(...rows.flat().map(({ start }) => start))
    parts.push(
      `<text class="title" x="${LEFT}" y="${y + 16}">${escaped(title)}<tspan class="sum" dx="12">${short(duration)}${escaped(unit)}, ${percent(bubble)} idle</tspan></text>`,
    )
    y += 28
    const [top, bottom] = [y, y + rows.length * ROW - (ROW - BOX)]
    const step = tickOf(longest, plot)
    const axis: string[] = []
    for (let i = 0; i * step <= duration; i++) {
      const x = round(LEFT + i * step * scale)
      axis.push(
        `<path class="grid" d="M${x} ${top - 4}V${bottom + 5}"/><text class="tick" x="${x}" y="${bottom + 17}">${short(i * step)}${escaped(unit)}</text>`,
      )
    }
    for (const [rank, timed] of rows.entries()) {
      const busy = timed.reduce((sum, { start, end }) => sum + end - start, 0)
      const idle = duration === 0 ? 0 : 1 - busy / duration
      const end = LEFT + duration * scale
      parts.push(
        `<text class="rank" x="${LEFT - 10}" y="${y + 17}">rank ${rank}</text>`,
        `<rect class="idle" x="${LEFT}" y="${y}" width="${round(end - LEFT)}" height="${BOX}"/>`,
        `<text class="side" x="${round(end + 10)}" y="${y + 17}"><title>the activations of so many micro-batches at once, over all of its stages</title>${percent(idle)} idle, holds up to ${steps.peakActivations[rank]}</text>`,
      )
      const stages = [...new Set(timed.map(({ action }) => action.stage))].sort((a, b) => a - b)
      for (const each of timed) parts.push(boxOf(each, { x: LEFT + (each.start - from) * scale, y, scale, from, unit, stages }))
      y += ROW
    }
    // Drawn first, the axis would be hidden by the rows; drawn last, its lines cross numbers, so they are hardly seen.
    parts.push(...axis)
    y = bottom + 44
  }
  const height = y - 10
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(drawings.map(({ title }) => title).join('; '))}">`,
    `<style>${STYLE}</style><rect class="paper" width="100%" height="100%"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

function rowsOf({ ranks }: PipelineSimulation): TimedAction[][] {
  return ranks.map((timed) => timed.filter(({ action }) => !isCommunication(action.kind)))
}

/** So wide that most boxes have room for their numbers, but where some took far longer than others, as on a loaded machine. */
function plotWidth(rows: readonly (readonly TimedAction[])[], longest: number): number {
  const boxes = rows.flat()
  const times = boxes.map(({ start, end }) => end - start).sort((a, b) => a - b)
  const narrow = times[Math.floor(times.length / 10)] ?? 0
  const digits = Math.max(0, ...boxes.map(({ action }) => String(action.microbatch).length))
  const wanted = narrow > 0 ? (longest * widthOf(digits)) / narrow : 0
  const most = Math.max(0, ...rows.map(({ length }) => length * BOX_MAX))
  return Math.max(PLOT_MIN, Math.min(PLOT_MAX, wanted, most))
}

interface Place {
  readonly x: number
  readonly y: number
  readonly scale: number
  readonly from: number
  readonly unit: string
  /** Of this rank. */
  readonly stages: readonly number[]
}

function boxOf({ action, start, end }: TimedAction, { x, y, scale, from, unit, stages }: Place): string {
  const { kind, stage, microbatch } = action
  const width = (end - start) * scale
  const what = `${actionText(action)}: stage ${stage}, ${NAMES[kind as Computation]}, micro-batch ${microbatch}`
  const when = `${round(start - from)} to ${round(end - from)}${escaped(unit)}`
  const text = String(microbatch)
  const number = width < widthOf(text.length) ? '' : `<text class="number" x="${round(x + width / 2)}" y="${y + 16}">${text}</text>`
  const strength = strengthOf(stages.indexOf(stage), stages.length)
  const fill = strength === 1 ? '' : ` fill-opacity="${strength}"`
  return `<g><title>${what}, ${when}</title><rect class="${kind}" x="${round(x)}" y="${y}" width="${round(width)}" height="${BOX}"${fill}/>${number}</g>`
}

const strengthOf = (place: number, count: number): number =>
  count === 1 ? 1 : round(STRENGTH_MIN + ((1 - STRENGTH_MIN) * place) / (count - 1))

function legend(boxes: readonly TimedAction[], ranks: number, y: number): string {
  const kinds = (Object.keys(NAMES) as Computation[]).filter((kind) => boxes.some(({ action }) => action.kind === kind))
  const entries: (readonly [look: string, text: string])[] = [
    ...kinds.map((kind) => [`class="${kind}"`, NAMES[kind]] as const),
    ['class="idle"', 'idle'],
  ]
  const parts: string[] = []
  let x = LEFT
  for (const [look, text] of entries) {
    parts.push(`<rect ${look} x="${x}" y="${y - 12}" width="14" height="14"/><text class="key" x="${x + 20}" y="${y}">${text}</text>`)
    x += 44 + 7 * text.length
  }
  const stages = new Set(boxes.map(({ action }) => action.stage)).size
  const loops = stages > ranks ? '; of the stages of one rank a later one is stronger in colour' : ''
  parts.push(`<text class="key note" x="${LEFT}" y="${y + 22}">numbers are micro-batches${loops}</text>`)
  return parts.join('\n')
}

const LIGHT = 'paper#ffffff ink#0f172a soft#475569 idle#eef2f6 line#0f172a F#93c5fd B#fdba74 I#c4b5fd W#86efac edge#334155'
const DARK = 'paper#0b1220 ink#f1f5f9 soft#a3b1c6 idle#1a2436 line#e2e8f0 F#2563eb B#c2560c I#7c3aed W#15803d edge#94a3b8'
const colours = (list: string): string =>
  list
    .split(' ')
    .map((each) => `--${each.replace('#', ':#')}`)
    .join(';')
const STYLE = [
  `svg{background:var(--paper);${colours(LIGHT)}}@media (prefers-color-scheme:dark){svg{${colours(DARK)}}}`,
  'text{font:12px system-ui,"DejaVu Sans",sans-serif;fill:var(--soft)}.title{font-size:14px;font-weight:600;fill:var(--ink)}.sum{font-size:12px;font-weight:400;fill:var(--soft)}',
  '.rank,.key{fill:var(--ink)}.note{fill:var(--soft)}.rank{text-anchor:end}.tick{font-size:10px;text-anchor:middle}',
  '.number{font-size:11px;text-anchor:middle;fill:var(--ink);pointer-events:none}.paper{fill:var(--paper)}.idle{fill:var(--idle)}.grid{stroke:var(--line);stroke-opacity:.14}',
  '.F,.B,.I,.W{stroke:var(--edge);stroke-width:.7}.F{fill:var(--F)}.B{fill:var(--B)}.I{fill:var(--I)}.W{fill:var(--W)}',
].join('')

/** 1, 2 or 5 times a power of ten. */
function tickOf(longest: number, plot: number): number {
  if (longest <= 0) return 1
  const least = (longest * TICK) / plot
  const power = 10 ** Math.floor(Math.log10(least))
  return power * [1, 2, 5, 10].find((times) => times * power >= least)!
}

function round(x: number): number {
  return Math.round(x * 100) / 100
}

const short = (x: number): string => String(Number(x.toPrecision(3)))
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
