/** '[worker0] ' before each line of a worker, as in torchrun, in the worker's own colour if the terminal shows colours. */
import type { Environment } from '../surroundings.js'

/** Cyan, yellow, magenta, blue, green, and their bright forms; not red, which says that something is wrong. */
const COLOURS = [36, 33, 35, 34, 32, 96, 93, 95, 94, 92] as const

export class Prefix {
  private readonly texts: ReadonlyMap<string, string>

  constructor(workers: readonly string[], isColoured: boolean) {
    const text = (name: string, at: number): string =>
      isColoured ? `\x1b[${COLOURS[at % COLOURS.length]}m[${name}]\x1b[0m ` : `[${name}] `
    this.texts = new Map(workers.map((name, at) => [name, text(name, at)]))
  }

  before(worker: string): string {
    return this.texts.get(worker) ?? `[${worker}] `
  }
}

/** By https://no-color.org, and by FORCE_COLOR as Node has it; a flag wins. */
export function showsColour(flag: boolean | undefined, isTerminal: boolean, env: Environment): boolean {
  if (flag !== undefined) return flag
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== '') return false
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0'
  return isTerminal && env.TERM !== 'dumb'
}
