/** What a check of `postgrad doctor` found, what it means, what to do about it; and its text. */

export type Verdict = 'ok' | 'warn' | 'fail'

export interface Finding {
  /** What was looked at. */
  readonly name: string
  readonly verdict: Verdict
  /** What is there. */
  readonly found: string
  /** What follows for postgrad; left out where nothing does. */
  readonly means?: string
  readonly todo?: string
}

export const ok = (name: string, found: string, means?: string): Finding => ({
  name,
  verdict: 'ok',
  found,
  ...(means === undefined ? {} : { means }),
})
export const warn = (name: string, found: string, means: string, todo: string): Finding => ({ name, verdict: 'warn', found, means, todo })
export const fail = (name: string, found: string, means: string, todo: string): Finding => ({ name, verdict: 'fail', found, means, todo })

const COLOURS: Readonly<Record<Verdict, number>> = { ok: 32, warn: 33, fail: 31 }

/** "warn  open files  256: each worker of a process needs some. Raise it: ulimit -n 4096" */
export function findingText({ name, verdict, found, means, todo }: Finding, nameWidth: number, isColoured: boolean): string {
  const word = verdict.padEnd(4)
  const shown = isColoured ? `\x1b[${COLOURS[verdict]}m${word}\x1b[0m` : word
  const more = [means, todo].filter((part) => part !== undefined).map((part) => `\n${' '.repeat(4 + 2 + nameWidth + 2)}${part}`)
  return `${shown}  ${name.padEnd(nameWidth)}  ${found}${more.join('')}\n`
}
