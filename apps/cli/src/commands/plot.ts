/** `postgrad plot`: draws the metrics files of runs as an SVG. The library draws (`plot` of postgrad/training). */
import { appendFileSync, readFileSync, statSync } from 'node:fs'
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

/** At the end of each picture that this command has drawn, which it may overwrite. */
const MARK = '<!-- drawn by postgrad plot -->\n'

export function plotCommand({ around: { stdout, stderr }, exitWith }: CommandContext): Command {
  const plotting = command('plot', 'draw the metrics that a MetricsWriter wrote, as an SVG', HELP)
    .argument('<file...>', 'metrics files, .jsonl or .csv; several are compared, each in a colour of its own')
    .option('-o, --out <file.svg>', 'the picture; default the first file with the ending .svg, unless another program wrote that')
    .option('--tags <a,b>', 'draw these tags only; default all', listOf)
    .option('--smooth <weight>', 'draw a running mean, from 0 to below 1, such as 0.9', weightOf)
    .option('--log', 'make the y axes logarithmic')
    .option('--title <text>', 'the title; default the names of the files')
    .option('--json', 'print { out, tags, runs } as JSON')
  plotting.addOption(plotting.createOption('--x <axis>', 'the x axis').choices(['step', 'seconds']).default('step'))
  return plotting.action(async (files: readonly string[], { out: given, json, ...options }: PlotFlags) => {
    const out = given ?? pictureOf(files[0]!)
    try {
      const runs = await Promise.all(files.map((file) => readMetrics(file)))
      if (given === undefined && isOfOthers(out)) {
        stderr.write(`postgrad plot: another program wrote ${out}. Name another picture: -o ${withoutEnding(out)}.plot.svg\n`)
        return exitWith(EXIT.failed)
      }
      for (const { path, truncated, outOfOrder } of runs) {
        if (truncated !== null) stderr.write(`postgrad plot: the last line of ${path} is not finished; it was left out.\n`)
        if (outOfOrder !== null)
          stderr.write(`postgrad plot: the steps of ${path} are not in order at step ${outOfOrder}: did two runs write this file?\n`)
      }
      await plot(runs, out, options)
      appendFileSync(out, MARK)
      const tags = options.tags ?? [...new Set(runs.flatMap((run) => run.tags))]
      if (options.log) for (const tag of tags) stderr.write(gapsText(tag, runs))
      stdout.write(json === undefined ? `${out}: ${tags.join(', ')}\n${runs.map(lineOf).join('')}` : jsonOf(out, tags, runs))
    } catch (error) {
      if (!isPostgradError(error)) throw error
      stderr.write(errorText(error, null))
      exitWith(EXIT.failed)
    }
  })
}

const withoutEnding = (file: string): string => file.slice(0, file.length - extname(file).length)
const pictureOf = (file: string): string => `${withoutEnding(file)}.svg`

/** The examples, say, write pictures with their own titles and lines next to their metrics. */
function isOfOthers(picture: string): boolean {
  const isFile = statSync(picture, { throwIfNoEntry: false })?.isFile() === true
  return isFile && !readFileSync(picture, 'utf8').endsWith(MARK)
}

/** Values that a logarithmic axis cannot show; empty if there are none. */
function gapsText(tag: string, runs: readonly Metrics[]): string {
  const count = runs.flatMap(({ rows }) => rows).filter(({ values }) => Object.hasOwn(values, tag) && values[tag]! <= 0).length
  if (count === 0) return ''
  return `postgrad plot: ${count === 1 ? 'a value' : `${count} values`} of ${tag} left out: a logarithmic axis shows values above 0 alone.\n`
}

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

Exit code 1: a file cannot be read or drawn, or another program wrote the default picture.`
