/** `postgrad explain`: what an error's code means, and what to do about it. */
import { relative } from 'node:path'
import type { Command } from 'commander'
import { EXIT } from '../exit-codes.js'
import { packageFolder, readSections, type Section } from '../explain/sections.js'
import { listText, sectionText } from '../explain/text.js'
import { similarNames } from '../similar.js'
import { type CommandContext, command } from './context.js'

const COLUMNS = 80
const LIKE_MIN = 4

export function explainCommand({ around: { stdout, stderr }, exitWith }: CommandContext): Command {
  return command('explain', 'say what the code of an error means, and what to do about it', HELP)
    .argument('[code...]', 'WORKER_DIED, say; without a code, or by the first letters of several, it lists them')
    .option('--json', 'an array of { code, subject, parts }')
    .action((wanted: readonly string[], { json }: { readonly json?: true }) => {
      const sections = [...readSections().values()]
      if (sections.length === 0) {
        stderr.write('postgrad explain: the pages of errors are missing in this installation. Install postgrad again.\n')
        return exitWith(EXIT.failed)
      }
      const columns = stdout.columns || COLUMNS
      // A pipe or a file takes lines of any length.
      const listed = (some: readonly Section[]): string => listText(some, stdout.isTTY ? columns : Number.POSITIVE_INFINITY)
      const answers = wanted.map((text) => ({ text, found: matching(text.toUpperCase(), sections) }))
      if (json !== undefined) {
        const found = wanted.length === 0 ? sections : answers.flatMap((answer) => answer.found)
        stdout.write(`${JSON.stringify(found, null, 2)}\n`)
      } else if (wanted.length === 0) stdout.write(listed(sections))
      else {
        const texts = answers
          .filter(({ found }) => found.length > 0)
          .map(({ found }) => (found.length === 1 ? sectionText(found[0]!, columns) : listed(found)))
        stdout.write(`${texts.join('\n\n')}${placeOfFiles(texts)}`)
      }
      const unknown = answers.filter(({ found }) => found.length === 0)
      for (const { text } of unknown) stderr.write(unknownText(text.toUpperCase(), sections))
      if (unknown.length > 0) exitWith(EXIT.failed)
    })
}

/** Where the files are that the texts name. */
function placeOfFiles(texts: readonly string[]): string {
  if (!texts.some((text) => /\((docs\/|SECURITY\.md)/.test(text))) return ''
  const folder = packageFolder()!
  const near = relative(process.cwd(), folder)
  return `\nThe files in brackets are in ${near === '' ? 'this folder' : near.startsWith('..') ? folder : near}.\n`
}

/** The code itself, or all that begin so. */
function matching(text: string, sections: readonly Section[]): readonly Section[] {
  const exact = sections.filter(({ code }) => code === text)
  return exact.length > 0 ? exact : sections.filter(({ code }) => code.startsWith(text))
}

function unknownText(text: string, sections: readonly Section[]): string {
  const similar = similarNames(
    text,
    sections.map(({ code }) => code),
    LIKE_MIN,
  )
  return `postgrad explain: '${text}' is not an error code of postgrad. ${
    similar.length > 0 ? `Similar: ${similar.join(', ')}.` : 'A program may throw codes of its own.'
  } 'postgrad explain' lists all.\n`
}

const HELP = `
Examples:
  $ postgrad explain WORKER_DIED
  $ postgrad explain pipeline          all codes that begin so
  $ postgrad explain                   all codes

Exit code 1: a code is unknown.`
