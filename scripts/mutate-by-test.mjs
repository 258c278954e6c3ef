/**
 * `npm run mutate` for the mutations of `mutations-by-test/`: the tree that tests run on is made with the changed module, and the tests whose names begin with the rule must fail
 * there. First they must pass on the sources as they are.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { bundledTree, mutantTree } from './bundled-tree.mjs'
import { runLane } from './jest-lane.mjs'
import { compiled } from './mutations.mjs'
import { root } from './setup.mjs'

/** Against a mutant whose test waits for ever; jest's own limit of a test comes first. */
const LIMIT_MS = 180_000

/** @returns by mutation, whether it was caught, and what is wrong otherwise */
export async function checkByTest(chosen, say) {
  const rows = []
  const sound = new Map()
  for (const mutation of chosen) {
    const { id, test, rule } = mutation
    const key = `${test}: ${rule}`
    if (!sound.has(key)) sound.set(key, await resultOf(mutation, await bundledTree()))
    const { passed, failed } = sound.get(key)
    let problem = null
    if (failed > 0) problem = `${key} fails without any mutation`
    else if (passed === 0) problem = `${key}: no such test`
    else problem = await mutantProblem(mutation, key)
    say(`mutate: ${id}: ${problem === null ? `caught by ${key}` : 'NOT CAUGHT'}`)
    rows.push({ ...mutation, problem: problem === null ? null : `${id}: ${problem}` })
  }
  return rows
}

async function mutantProblem(mutation, key) {
  const at = join(root, '.cache/mutants', mutation.id)
  try {
    const tree = await mutantTree(at, await compiled(mutation))
    const { failed, failedTests, trouble } = await resultOf(mutation, tree)
    if (failedTests > 0) return null
    // A mutant that cannot be loaded, or never ends, shows nothing of the test.
    return failed > 0 ? `${key} did not run to its end: ${trouble ?? 'the test file cannot be loaded'}` : `${key} did not notice it`
  } finally {
    rmSync(at, { recursive: true, force: true })
  }
}

/** How the tests of the rule end on that tree. jest prints no report, since a mutant is to fail. */
function resultOf({ test, rule }, tree) {
  const name = rule.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  // CAN-1 is not CAN-14.
  return runLane(laneOf(test), [test, '-t', `(^|[ ])${name}(?![0-9])`], { tree, limitMs: LIMIT_MS, reports: false })
}

function laneOf(test) {
  return /\.(sim|real|soak)\.test\.ts$/.exec(test)?.[1] ?? 'unit'
}
