/** The entry of a pool's threads: it imports the user's module, whose `expose` gives jobs their names. `job-pool.ts` starts the threads. */
import { importModule } from '@postgrad/base/internal'
import type { JobProgram } from '@postgrad/jobs/internal'
import { runExposed, threadRegistry } from '@postgrad/rpc/internal'

/** The pool's `data`. */
export interface JobProgramData {
  /** `file:` URL of the user's module. */
  readonly url: string
  readonly typescript: string | null
}

let program: Promise<unknown> | null = null

export const runJob: JobProgram['runJob'] = async (name, args, data) => {
  const { url, typescript } = data as JobProgramData
  program ??= importModule(url, typescript)
  await program
  return runExposed(threadRegistry.lookup(name, 'job threads'), args)
}
