/** How long processes take until they are ready: ours that `launch` starts, ours that join a group, and bare ones. */
import { launch } from 'postgrad'
import { Child } from './child.js'
import { ProcessGroup } from './process-group.js'

const PROGRAM = new URL('../program.js', import.meta.url)
const BARE = new URL('./bare-entry.js', import.meta.url)

/** Seconds from `launch` until so many processes with a worker each are ready. */
export async function launchSeconds(processes: number): Promise<number> {
  const started = performance.now()
  const cluster = await launch(PROGRAM, { workers: processes, processes })
  const seconds = (performance.now() - started) / 1000
  await cluster.close({ timeoutMs: 0 })
  return seconds
}

/** Seconds until so many processes have found each other by `init`. */
export async function initSeconds(processes: number): Promise<number> {
  const group = new ProcessGroup(processes)
  const seconds = await group.startSeconds()
  await group.close()
  return seconds
}

/** The same for processes with an empty program. */
export async function bareSeconds(processes: number): Promise<number> {
  const started = performance.now()
  const children = Array.from({ length: processes }, () => new Child(BARE))
  await Promise.all(children.map((child) => child.ask({})))
  const seconds = (performance.now() - started) / 1000
  await Promise.all(children.map((child) => child.end()))
  return seconds
}
