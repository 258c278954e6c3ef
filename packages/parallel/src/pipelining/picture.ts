/**
 * A pipeline's step as a picture, an SVG that any browser opens: a row for each rank, a box for each action as wide as it took, planned above and measured below. Drawn by hand as the sequence
 * diagrams of package `sim` are, since nothing that ships draws.
 *
 *     planned, 27 % idle     rank 0  ▐0▐1▐2▐3▌      ▐ 0 ▐ 1 …
 *                            rank 1    ▐0▐1▐2▐3▌  ▐ 0 ▐ 1 ▐ …
 *     measured, 31 % idle    …
 */
import { actionText, isCommunication, type PipelineAction } from './action.js'
import type { PipelineSchedule } from './schedule.js'
import { measured, needsOf, type PipelineSimulation, type TimedAction } from './simulation.js'

/** One of the drawings of `drawPipeline`: what it is called, and who did what when. */
export interface PipelineDrawing {
  readonly title: string
  readonly steps: PipelineSimulation
  /** Behind the duration; default none, as for a plan. */
  readonly unit?: string
}

const WIDTH = 1100
const LEFT = 70
const RIGHT = 20
const ROW = 30
const BOX = 24
const HEAD = 46
/** Narrower boxes have no number in them. */
const TEXT_MIN = 14

const COLOURS = { F: ['#bfdbfe', '#1e40af'], B: ['#fed7aa', '#9a3412'], I: ['#fde68a', '#92400e'], W: ['#bbf7d0', '#166534'] } as const
const NAMES = { F: 'forward', B: 'backward', I: 'backward, inputs', W: 'backward, weights' } as const
/** Stages of one rank differ in how strong their colour is. */
const STRENGTH_MIN = 0.45

/** One below the other, each over the whole width. */
export function drawPipeline(drawings: readonly PipelineDrawing[]): string {
  const parts: string[] = []
  const kinds = new Set<string>()
  let y = 8
  for (const { title, steps, unit = '' } of drawings) {
    const { ranks, duration, bubble } = steps
    const all = ranks.flat().filter(({ action }) => !isCommunication(action.kind))
    const from = Math.min(...all.map(({ start }) => start))
    const scale = (WIDTH - LEFT - RIGHT) / Math.max(duration, Number.MIN_VALUE)
    const length = `${Number(duration.toPrecision(3))}${unit === '' ? '' : ` ${unit}`}`
    parts.push(`<text class="title" x="${LEFT}" y="${y + 20}">${escaped(title)}</text>`)
    parts.push(`<text class="note" x="${WIDTH - RIGHT}" y="${y + 20}">${length}, ${(100 * bubble).toFixed(1)} % idle</text>`)
    y += HEAD - 16
    for (const [rank, timed] of ranks.entries()) {
      parts.push(
        `<text class="rank" x="${LEFT - 10}" y="${y + 17}">rank ${rank}</text><rect class="row" x="${LEFT}" y="${y}" width="${WIDTH - LEFT - RIGHT}" height="${BOX}"/>`,
      )
      const stages = [...new Set(timed.map(({ action }) => action.stage))].sort((a, b) => a - b)
      for (const { action, start, end } of timed) {
        const { kind, stage, microbatch } = action
        if (isCommunication(kind)) continue
        kinds.add(kind)
        const [x, width] = [LEFT + (start - from) * scale, (end - start) * scale]
        const strength = stages.length === 1 ? 1 : STRENGTH_MIN + (1 - STRENGTH_MIN) * (stages.indexOf(stage) / (stages.length - 1))
        const tip = `<title>${actionText(action)}: ${round(start - from)} to ${round(end - from)}${unit === '' ? '' : ` ${unit}`}</title>`
        const label =
          width < TEXT_MIN
            ? ''
            : `<text class="box" x="${round(x + width / 2)}" y="${y + 16}" fill="${COLOURS[kind as 'F'][1]}">${microbatch}</text>`
        parts.push(
          `<g>${tip}<rect x="${round(x)}" y="${y}" width="${round(width)}" height="${BOX}" fill="${COLOURS[kind as 'F'][0]}" fill-opacity="${round(strength)}" stroke="${COLOURS[kind as 'F'][1]}"/>${label}</g>`,
        )
      }
      y += ROW
    }
    y += 16
  }
  const legend = (['F', 'B', 'I', 'W'] as const).filter((kind) => kinds.has(kind))
  legend.forEach((kind, i) => {
    const x = LEFT + 170 * i
    parts.push(
      `<rect x="${x}" y="${y}" width="14" height="14" fill="${COLOURS[kind][0]}" stroke="${COLOURS[kind][1]}"/><text class="key" x="${x + 20}" y="${y + 12}">${NAMES[kind]}</text>`,
    )
  })
  const height = y + 30
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}">`,
    `<style>${STYLE}</style><rect width="100%" height="100%" fill="#ffffff"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

const STYLE = [
  'text{font-family:system-ui,"DejaVu Sans",sans-serif;font-size:12px;fill:#334155}.title{font-size:14px;font-weight:600;fill:#0f172a}',
  '.note,.rank{text-anchor:end}.row{fill:#f1f5f9}.box{font-size:11px;text-anchor:middle}',
].join('')

/**
 * What `step` gave on each rank, on one clock. Clocks of workers begin at different times; each is put where nothing begins before what it needs has ended, in the middle of what
 * the step's forward and backward passes between two ranks leave open.
 */
export function measuredSteps(schedule: PipelineSchedule, actions: readonly (readonly TimedAction[])[]): PipelineSimulation {
  const needs = needsOf({ ...schedule, ranks: [] })
  const done = new Map<string, { readonly rank: number; readonly end: number }>()
  const computed = actions.map((timed) => timed.filter(({ action }) => !isCommunication(action.kind)))
  for (const [rank, timed] of computed.entries())
    for (const { action, end } of timed) done.set(actionText({ ...action, kind: action.kind === 'I' ? 'B' : action.kind }), { rank, end })
  /** By pair of ranks a, b: how far b's clock must be moved forward, at least, if a's stays. */
  const least = new Map<string, number>()
  for (const [rank, timed] of computed.entries()) {
    for (const { action, start } of timed) {
      const need = needs(action)
      const source = need === null ? undefined : done.get(need)
      if (source === undefined || source.rank === rank) continue
      const pair = `${source.rank} ${rank}`
      least.set(pair, Math.max(least.get(pair) ?? Number.NEGATIVE_INFINITY, source.end - start))
    }
  }
  const shifts = new Map([[0, 0]])
  for (const [a, shift] of shifts) {
    for (const b of computed.keys()) {
      const [forward, back] = [least.get(`${a} ${b}`), least.get(`${b} ${a}`)]
      if (shifts.has(b) || (forward === undefined && back === undefined)) continue
      shifts.set(b, shift + (forward === undefined ? -back! : back === undefined ? forward : (forward - back) / 2))
    }
  }
  return measured(
    computed.map((timed, rank) => {
      const shift = shifts.get(rank) ?? 0
      return timed.map(({ action, start, end }) => ({ action, start: start + shift, end: end + shift }))
    }),
  )
}

/** What each stage's actions of a kind cost on average, for `simulateSchedule`: how the step would have gone without anything between them. */
export function measuredCosts(actions: readonly (readonly TimedAction[])[]): (action: PipelineAction) => number {
  const sums = new Map<string, { cost: number; count: number }>()
  const keyOf = ({ stage, kind }: PipelineAction): string => `${stage}${kind}`
  for (const { action, start, end } of actions.flat()) {
    const sum = sums.get(keyOf(action)) ?? { cost: 0, count: 0 }
    sums.set(keyOf(action), { cost: sum.cost + end - start, count: sum.count + 1 })
  }
  return (action) => {
    const { cost, count } = sums.get(keyOf(action)) ?? { cost: 0, count: 1 }
    return isCommunication(action.kind) ? 0 : cost / count
  }
}

function round(x: number): number {
  return Math.round(x * 100) / 100
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
