/**
 * One mutation in a process of its own: compiles the changed source, puts it in the place of the compiled file while that is loaded (nothing on disk
 * changes), and runs a catcher's seeds until one fails. Prints one line of JSON, also when the mutant ends the process. `mutate.mjs` starts it.
 */
import { writeSync } from 'node:fs'
import { register } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { compiled, MUTATIONS } from './mutations.mjs'
import { root } from './setup.mjs'

const [id, catcherName, seedsText] = process.argv.slice(2)
const seeds = Number(seedsText)
let seed = -1

/** Output of the suites is dropped. */
console.log = () => {}
function tell(report) {
  writeSync(1, `\nMUTANT ${JSON.stringify(report)}\n`)
  process.exit(0)
}
/** A mutant may also end in what nobody catches. */
const caught = (error) => tell({ seeds: seed + 1, error: `${error?.code ?? error?.name ?? 'Error'}: ${String(error?.message ?? error)}` })
process.on('uncaughtException', caught)
process.on('unhandledRejection', caught)

const mutant = id === 'none' ? null : await compiled(MUTATIONS.find((one) => one.id === id))
const data = { root, url: mutant === null ? null : pathToFileURL(mutant.path).href, source: mutant?.code ?? null }
register(pathToFileURL(join(root, 'scripts/mutate-hook.mjs')), { data })
const { CATCHERS } = await import(pathToFileURL(join(root, 'packages/testing/dist/suites/mutants.suite.js')).href)
const catchers = { ...CATCHERS, 'call-programs': callPrograms, 'roster-programs': rosterPrograms, ...collectives() }
if (catchers[catcherName] === undefined) throw new Error(`no catcher '${catcherName}': ${Object.keys(catchers).join(', ')}`)
const catcher = await catchers[catcherName]()
for (seed = 0; seed < seeds; seed++) await Promise.resolve(catcher(seed)).catch(caught)
tell({ seeds, error: null })

async function callPrograms() {
  const { callProgramProblems } = await import(pathToFileURL(join(root, 'packages/rpc/dist/calls/call-programs.suite.js')).href)
  return async (number) => {
    const [first] = await callProgramProblems(number)
    if (first !== undefined) throw new Error(first)
  }
}

async function rosterPrograms() {
  const { runRosterProgram } = await import(pathToFileURL(join(root, 'packages/cluster/dist/membership/roster-programs.suite.js')).href)
  return async (number) => {
    const [first] = runRosterProgram(number).problems
    if (first !== undefined) throw new Error(first)
  }
}

function collectives() {
  const suite = (name) => import(pathToFileURL(join(root, `packages/process-group/dist/${name}.suite.js`)).href)
  return {
    'collective-programs': async () => {
      const { randomProgram } = await suite('sim-ranks')
      return (number) => randomProgram(number, 2 + (number % 4))
    },
    'collective-deaths': async () => {
      const { diesAtPoints, PROGRAMS } = await suite('deaths')
      return (number) => diesAtPoints(PROGRAMS[number % PROGRAMS.length][1], { seed: number, stride: 1 })
    },
  }
}
