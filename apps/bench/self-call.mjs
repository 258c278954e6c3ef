/**
 * Measures the CPU time of an empty call, at both ends together: a worker calls itself, so only codec, mailbox and rpc take part.
 * `npx tsc -b packages/rpc && node apps/bench/self-call.mjs [path of another build's packages/rpc]`. A second build runs in turns with the first,
 * in processes of its own, and the least time of each counts: on a shared machine the rest is noise.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'

const CALLS = 50_000
const BATCH = 1000
const PASSES = 8
const ROUNDS = 6
const here = fileURLToPath(new URL('../../packages/rpc/', import.meta.url))

if (process.argv[2] === '--one') {
  console.log(JSON.stringify(await measure(process.argv[3])))
} else {
  const builds = [here, ...process.argv.slice(2)]
  const least = builds.map(() => ({ sequential: Number.POSITIVE_INFINITY, pipelined: Number.POSITIVE_INFINITY }))
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, build] of builds.entries()) {
      const { stdout, stderr, status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), '--one', build], { encoding: 'utf8' })
      if (status !== 0) throw new Error(stderr)
      for (const [name, us] of Object.entries(JSON.parse(stdout))) least[i][name] = Math.min(least[i][name], us)
    }
  }
  for (const [i, { sequential, pipelined }] of least.entries()) {
    console.log(`${builds[i]}: ${sequential.toFixed(2)} µs a call, one after the other; ${pipelined.toFixed(2)} µs, ${BATCH} at once`)
  }
}

/** Microseconds of CPU a call, the least of several passes. */
async function measure(build) {
  const at = (path) => import(pathToFileURL(`${build}/${path}`).href)
  const { WorkerRuntime, call, expose } = { ...(await at('dist/internal.js')), ...(await at('dist/index.js')) }
  const { RealClock } = await at('node_modules/@postgrad/transport/dist/internal.js')
  const noop = () => {}
  expose({ noop })
  const worker = new WorkerRuntime({ name: 'w', id: 0, clock: new RealClock() })
  const cpuUs = () => process.cpuUsage().user + process.cpuUsage().system
  const least = { sequential: Number.POSITIVE_INFINITY, pipelined: Number.POSITIVE_INFINITY }
  await worker.run(async () => {
    for (let pass = 0; pass < PASSES; pass++) {
      let beganUs = cpuUs()
      for (let i = 0; i < CALLS; i++) await call('w', noop)
      least.sequential = Math.min(least.sequential, (cpuUs() - beganUs) / CALLS)
      beganUs = cpuUs()
      for (let i = 0; i < CALLS / BATCH; i++) await Promise.all(Array.from({ length: BATCH }, () => call('w', noop)))
      least.pipelined = Math.min(least.pipelined, (cpuUs() - beganUs) / CALLS)
    }
  })
  await worker.close()
  return least
}
