/** Whether programs in TypeScript run here. */
import { type Finding, ok, warn } from './finding.js'

export interface TypescriptFacts {
  /** Where tsx was found, from the working directory; null: nowhere. */
  readonly tsx: string | null
  readonly strips: boolean
}

export function judgeTypescript({ tsx, strips }: TypescriptFacts): Finding {
  if (strips)
    return ok('TypeScript', tsx === null ? 'Node strips types' : 'Node strips types; tsx is here for enums, decorators and aliases')
  if (tsx !== null) return ok('TypeScript', 'tsx is here')
  return warn('TypeScript', 'no tsx', 'This Node runs no .ts program by itself.', 'npm install tsx')
}
