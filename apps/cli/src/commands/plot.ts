/** `postgrad plot`: draws the metrics files of runs as an SVG. The library draws (`plot` of postgrad/training). */
import { extname } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { isPostgradError } from 'postgrad'
import { type Metrics, plot, readMetrics } from 'postgrad/training'
import { errorText } from '../error-text.js'
import { EXIT } from '../exit-codes.js'
import { type CommandContext, command } from './context.js'

interface PlotFlags {
  readonly out?: string
  readonly tags?: readonly string[]
  readonly smooth?: number
  readonly x: 'step' | 'seconds'
  readonly log?: true
  readonly title?: string
  readonly json?: true
}

export function plotCommand({ around: { stdout, stderr }, exitWith }: CommandContext): Command {
  const plotting = command('plot', 'draw the metrics that a MetricsWriter wrote, as an SVG', HELP)
    .argument('<file...>', 'metrics files, .jsonl or .csv; several are compared, each in a colour of its own')
    .option('-o, --out <file.svg>', 'the picture; default the first file with the ending .svg')
    .option('--tags <a,b>', 'draw these tags only; default all', listOf)
    .option('--smooth <weight>', 'draw a running mean, from 0 to below 1, such as 0.9', weightOf)
    .option('--log', 'make the y axes logarithmic')
    .option('--title <text>', 'the title; default the names of the files')
    .option('--json', 'print { out, tags, runs } as JSON')
  plotting.addOption(plotting.createOption('--x <axis>', 'the x axis').choices(['step', 'seconds']).default('step'))
  return plotting.action(async (files: readonly string[], { out = pictureOf(files[0]!), json, ...options }: PlotFlags) => {
    try {
      const runs = await Promise.all(files.map((file) => readMetrics(file)))
      for (const { path, truncated, outOfOrder } of runs) {
        if (truncated !== null) stderr.write(`postgrad plot: the last line of ${path} is not finished; it was left out.\n`)
        if (outOfOrder !== null)
          stderr.write(`postgrad plot: the steps of ${path} are not in order at step ${outOfOrder}: did two runs write this file?\n`)
      }
      await plot(runs, out, options)
      const tags = options.tags ?? [...new Set(runs.flatMap((run) => run.tags))]
      stdout.write(json === undefined ? `${out}: ${tags.join(', ')}\n${runs.map(lineOf).join('')}` : jsonOf(out, tags, runs))
    } catch (error) {
      if (!isPostgradError(error)) throw error
      stderr.write(errorText(error, null))
      exitWith(EXIT.failed)
    }
  })
}

const pictureOf = (file: string): string => `${file.slice(0, file.length - extname(file).length)}.svg`

function lineOf({ path, rows }: Metrics): string {
  const [first, last] = [rows[0], rows.at(-1)]
  return `  ${path}: ${rows.length} lines, steps ${first?.step} to ${last?.step}\n`
}

function jsonOf(out: string, tags: readonly string[], runs: readonly Metrics[]): string {
  const described = runs.map(({ path, rows, truncated, outOfOrder }) => ({
    ...{ path, lines: rows.length, lastStep: rows.at(-1)?.step ?? null },
    ...{ truncated, outOfOrder },
  }))
  return `${JSON.stringify({ out, tags, runs: described }, null, 2)}\n`
}

function listOf(text: string): readonly string[] {
  const tags = text.split(',').map((tag) => tag.trim())
  if (tags.some((tag) => tag === '')) throw new InvalidArgumentError('Write tags with commas between them, such as loss,accuracy.')
  return tags
}

function weightOf(text: string): number {
  const weight = Number(text)
  if (text.trim() === '' || !(weight >= 0 && weight < 1)) throw new InvalidArgumentError('Write a number from 0 to below 1, such as 0.9.')
  return weight
}

const HELP = `
Examples:
  $ postgrad plot run.jsonl
  $ postgrad plot run.jsonl --tags loss --smooth 0.9 -o loss.svg
  $ postgrad plot first.jsonl second.jsonl --x seconds

Exit code 1: a file cannot be read or drawn.`
