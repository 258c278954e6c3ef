/**
 * `npm run soak -- --seeds 10000 [paths]`: the tests that take longer than a change should wait for, files `*.soak.test.ts`. Every
 * `--name COUNT` reaches them as POSTGRAD_SOAK_NAME; counts are printed before, so that a report says how much was run.
 */
import { bundledTree } from './bundled-tree.mjs'
import { runLane } from './jest-lane.mjs'
import { setupOrExit, timed } from './setup.mjs'

const LIMIT_MS = 24 * 3_600_000

const HELP = `npm run soak -- [--name COUNT …] [paths]

npm run soak                                                            all files *.soak.test.ts; --seeds is 1000, other counts are the tests' own
npm run soak -- --seeds 10000                                           for a night
npm run soak -- --programs 100000 testing/dist/programs                 random distributed programs against the inlined ones;
                                                                        --passes those of three roots and two passes at least, --second with
                                                                        second derivatives, --crashes with workers that crash
npm run soak -- --accumulations 4000 parallel/dist/pipelining/accumulation   gradients gathered over several batches, also while a rank dies; 400 is its own count
npm run soak -- --rref-seeds 100000 testing/dist/rref-model             the RRef protocol against its model
npm run soak -- --seeds 10000 testing/dist/faulty-programs              random programs under random faults
npm run soak -- --forged 500000 testing/dist/forged                     messages with every field wrong, in every state
npm run soak -- --hostile 5000000 testing/dist/hostile               hostile inputs to every reader of what comes from a socket; 5,000,000 is its own count
npm run soak -- --terminations 1000 postgrad/dist/turmoil               threads that end in the middle of work
npm run soak -- --runs 50 postgrad/dist/acceptance                      the acceptance cases on threads
npm run soak -- --pools 1000 data/dist/workers                          pools of a loader that are closed while they start
npm run soak -- --turmoil-ms 600000 main-turmoil                        the main thread among workers that die
npm run soak -- --graphs 100000 with-torch                              random graphs of views, writes, hooks and custom functions next to PyTorch, of seed 1 on
                                                                        (--first SEED for others); it needs python3 with torch
npm run soak -- --fuzz 30000 derivatives/fuzz                           random calls of operations with gradients and second derivatives next to PyTorch, on each backend,
                                                                        of seed 1 on (--first SEED for others); 3000 is its own count; it needs python3 with torch
npm run soak -- --calls 100000 wasm/fuzz                                drawn calls of every kernel of kernels.wasm next to the oracle; 100000 is its own count (--seed SEED
                                                                        begins at the one that an error names)
npm run soak -- --rounds 200 helper-threads                             helper threads and workers that are terminated in the middle of kernels
npm run soak -- --messages 10000 lineage/lineage                        how the lineage of a pass grows
npm run soak -- --rounds 500 --seed 1 cluster/dist/fire                 training over processes while their network breaks and they are stopped and killed
npm run soak -- --kills 200 checkpoint/runs                             two runs that are killed while they save into one directory
npm run soak -- --flood-ms 3600000 peer-flood                            floods by a peer in a restricted role on a member that trains, in all so long; POSTGRAD_SOAK_FLOOD_KIND=CALL
                                                                        for the kinds with that in their name, POSTGRAD_SOAK_TOLD=1 prints as it goes

A path is a part of a test file's; each COUNT reaches the tests as POSTGRAD_SOAK_NAME.`

const counts = new Map([['seeds', 1_000]])
const args = []
const argv = process.argv.slice(2)
if (argv.includes('--help')) {
  console.log(HELP)
  process.exit(0)
}
for (let index = 0; index < argv.length; index++) {
  const name = argv[index].match(/^--([a-z-]+)$/)?.[1]
  if (name === undefined || !/^[0-9_]+$/.test(argv[index + 1] ?? '')) args.push(argv[index])
  else counts.set(name, Number(argv[++index].replaceAll('_', '')))
}

await setupOrExit()
const env = { POSTGRAD_SOAK: '1' }
for (const [name, count] of counts) env[`POSTGRAD_SOAK_${name.toUpperCase().replaceAll('-', '_')}`] = String(count)
const said = [...counts].map(([name, count]) => `${count} ${name}`).join(', ')
const done = timed(console.log, `soak: ${said}`)
const result = await runLane('soak', args, { env, limitMs: LIMIT_MS, tree: await bundledTree() })
if (result.trouble !== null) console.log(result.trouble)
done()
const nothing = result.passed + result.failed === 0
console.log(
  `soak: ${said}: ${nothing ? 'no soak test matches' : `${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped`}`,
)
process.exitCode = result.failed > 0 || nothing ? 1 : 0
