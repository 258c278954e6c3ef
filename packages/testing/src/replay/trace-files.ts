/** Writes the trace of a failed run when somebody asks for it: as text, and as a sequence diagram that a browser shows. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { planText } from '../faults/fault-plan.js'
import type { RunIdentity } from './replay-token.js'
import type { FailedRun } from './shrink.js'

const NAME_MAX = 80

/** Returns a line that says where; '' if nothing is known of what happened. A directory that cannot be written to must not hide the failure: the line says so. */
export function writeTrace(directory: string, { trace, error, variant, plan }: FailedRun, identity: RunIdentity | null): string {
  const name = nameOf(identity)
  if (trace === null) return ''
  const path = join(directory, `${slug(name)}-seed${variant.seed}`)
  // A test runner's colours are none in a file.
  const message = stripVTControlCharacters(String((error as Partial<Error>)?.message ?? error))
  const rules = variant.faults === null ? plan : []
  const head = [`${name}, seed ${variant.seed}`, message, rules.length === 0 ? '' : planText(rules), ''].filter((part) => part !== '')
  try {
    mkdirSync(directory, { recursive: true })
    writeFileSync(`${path}.txt`, `${head.join('\n')}\n\n${trace.readable}\n`)
    writeFileSync(`${path}.svg`, trace.diagram({ title: `${name}, seed ${variant.seed}`, note: message }))
    return `Trace: ${path}.txt, as a diagram: ${path}.svg`
  } catch (problem) {
    return `The trace could not be written to ${directory}: ${(problem as Error).message}`
  }
}

function nameOf(identity: RunIdentity | null): string {
  if (identity === null) return 'a run'
  if (identity.kind === 'program') return `${identity.export} of ${identity.program.split(/[\\/]/).at(-1)}`
  return `${identity.name === '' ? 'a test' : identity.name}${identity.run === 0 ? '' : ` (run ${identity.run})`}`
}

function slug(text: string): string {
  return text
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, NAME_MAX)
}
