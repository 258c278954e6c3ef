/** The examples that come with the package: their list, which `npm run example` of the repository has as well, and the places of their files. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Example {
  readonly name: string
  /** In one line. */
  readonly shows: string
  /** The folder with its sources. */
  readonly source: string
  /** Its command, a module that reads `process.argv`. */
  readonly main: string
}

// From `dist/cli/example` of the package, and from `apps/cli/dist/example` of the repository.
const place = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
const LIST = place('examples/examples.json')
const [SOURCES, PROGRAMS] = existsSync(place('examples/src'))
  ? [place('examples/src'), place('examples/dist')]
  : [place('examples'), place('dist/examples')]

/** By name; none if this installation lacks them. */
export function readExamples(): ReadonlyMap<string, Example> {
  if (!existsSync(LIST)) return new Map()
  const list = JSON.parse(readFileSync(LIST, 'utf8')) as Readonly<Record<string, string>>
  return new Map(
    Object.entries(list).map(([name, shows]) => [name, { name, shows, source: `${SOURCES}/${name}`, main: `${PROGRAMS}/${name}/main.js` }]),
  )
}
