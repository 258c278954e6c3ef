/** All checks of `postgrad doctor`, in the order in which they are shown. Each costs a fraction of a second. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { openBlas, reserveHeap } from 'postgrad/plugin'
import { runtimeDir } from '../status/runtime-dir.js'
import type { Surroundings } from '../surroundings.js'
import { judgeBlas } from './blas.js'
import { judgeClock } from './clock.js'
import type { Finding } from './finding.js'
import { computeOn, judgeWasm } from './kernels.js'
import { judgeLauncher } from './launcher.js'
import { judgeCores, judgeHeap, judgeMemory, judgeNode, judgeOpenFiles, readMachine } from './machine.js'
import { judgeLoopback, judgeOwnHostname, judgePorts, judgeRuntimeDir, judgeUnixSockets, whyNoListen } from './network.js'
import { judgeTypescript } from './typescript.js'

export interface DoctorOptions {
  readonly ports?: readonly [number, number]
  readonly bind?: string
}

export async function* findings({ ports, bind = '127.0.0.1' }: DoctorOptions, around: Surroundings): AsyncGenerator<Finding> {
  const machine = readMachine()
  yield judgeNode(machine)
  yield judgeTypescript({ tsx: tsxFrom(process.cwd()), strips: (process.features as { typescript?: unknown }).typescript === 'strip' })
  yield judgeCores(machine)
  yield judgeMemory(machine)
  yield judgeHeap(reserveHeap, machine)
  yield judgeOpenFiles(machine)
  yield await judgeWasm(computeOn)
  yield judgeBlas(openBlas)
  yield await judgeClock({ ...around, sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) })
  yield await judgeLoopback()
  yield await judgeUnixSockets(around.onExit)
  if (ports !== undefined) yield await judgePorts(ports, (port) => whyNoListen({ host: bind, port }))
  yield await judgeOwnHostname()
  yield judgeRuntimeDir(runtimeDir(around.env))
  yield judgeLauncher(around.env)
}

/** The widest name: findings come one by one, and are aligned to it. */
export const NAME_WIDTH = 'ports 10000-65535'.length

function tsxFrom(folder: string): string | null {
  try {
    return createRequire(pathToFileURL(join(folder, 'here.js'))).resolve('tsx/esm/api')
  } catch {
    return null
  }
}
