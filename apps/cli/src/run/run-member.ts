/**
 * A run of which this process is one worker: a launcher starts the processes (torchrun, Slurm, Kubernetes, a person with --rank). It loads the program, meets
 * the others at the master's address, runs main, and waits until all of them are done. Only the launcher can restart it.
 */
import type { MainContext } from 'postgrad'
import type { Bridge, JoinedMember } from '../bridge.js'
import { EXIT, EXIT_BY_SIGNAL } from '../exit-codes.js'
import { Screen } from '../output/screen.js'
import { formatHostPort } from '../rendezvous/host-port.js'
import type { Place } from '../rendezvous/launcher-env.js'
import { memberSource } from '../status/member-source.js'
import { openStatus, type RunStatus } from '../status/run-status.js'
import type { StopSignal, Surroundings } from '../surroundings.js'
import { codeOfRun, codeOfStart, deathIn } from './exit-code.js'
import { Others } from './others.js'
import { OwnOutput } from './own-output.js'
import { RESTART_COUNT } from './run-cluster.js'
import { namesOf, networkOf, type RunOptions, timedOut } from './run-options.js'
import { showStalls } from './stalls.js'

/** As `cluster.close` has it. */
const GRACE_MS = 500

/** @returns the exit code */
export async function runMember(
  program: string,
  args: readonly string[],
  options: RunOptions,
  place: Place,
  around: Surroundings,
  bridge: Bridge,
): Promise<number> {
  const { rank, worldSize, master, restarts } = place
  const name = namesOf(options.workers, place)[rank]!
  const output = new OwnOutput(around)
  const screen = new Screen(options, [name], output.around, { hasPrefix: true, isShared: true })
  const { display } = screen
  // The program writes to this process's own streams.
  if (screen.sinks !== null) output.divert(name, screen.sinks)
  around.env[RESTART_COUNT] = String(restarts)
  const end = (): void => {
    output.restore()
    screen.end()
  }
  const fail = (error: unknown, code: number): number => {
    end()
    display.failure(code === EXIT.failed ? name : null, error, [])
    return code
  }
  let member: JoinedMember | null = null
  let others: Others | null = null
  let status: RunStatus | null = null
  let signalled: StopSignal | null = null
  const stopListening = around.onSignal((signal) => {
    // An interactive shell sends it twice when its terminal closes.
    if (signalled !== null && signal === 'SIGHUP') return
    // Nobody to leave, or the user has interrupted twice.
    if (member === null || signalled !== null) {
      end()
      around.stderr.write(`postgrad: stopped by ${signal}\n`)
      around.exit(EXIT_BY_SIGNAL[signal])
    }
    signalled = signal
    void leave(member, others, `stopped by ${signal}`)
  })
  try {
    if (options.status !== false) status = await openStatus({ program, args }, around)
    try {
      // What it exposes is there before anybody can call it.
      const main = await bridge.importMain(program)
      display.note(`rank ${rank} of ${worldSize} by ${place.source}; meets the others at ${formatHostPort(master)}`)
      member = await bridge.join({
        name,
        rank,
        worldSize,
        initMethod: `tcp://${formatHostPort(master)}`,
        ...networkOf(options),
        ...(options.device === undefined ? {} : { device: options.device }),
        ...(options.seed === undefined ? {} : { seed: options.seed }),
        ...(options.rpcTimeout === undefined ? {} : { rpcTimeoutMs: options.rpcTimeout }),
        ...(options.joinTimeout === undefined ? {} : { timeoutMs: options.joinTimeout }),
        onConnectionRefused: (error) => display.note(error.message.slice(error.op.length + 2)),
      })
      status?.show(memberSource(member, display, restarts))
      showStalls(member, display)
      others = new Others(member)
      display.state(name, 'running')
      const error = await ofMain(member, others, () => main({ name, rank, worldSize, args } satisfies MainContext), options)
      if (signalled !== null) {
        display.state(name, 'stopped')
        end()
        around.stderr.write(`postgrad: stopped by ${signalled}\n`)
        return EXIT_BY_SIGNAL[signalled]
      }
      if (error === null) {
        display.state(name, 'done')
        end()
        return EXIT.done
      }
      display.state(name, error.isLost ? 'stopped' : 'failed')
      await others.tellOf(error.thrown)
      return fail(error.thrown, error.isLost ? EXIT.lost : codeOfRun(error.thrown))
    } catch (error) {
      return fail(error, member === null ? codeOfStart(error) : codeOfRun(error))
    }
  } finally {
    stopListening()
    ;(others as Others | null)?.stop()
    await status?.close()
    await close(member)
  }
}

async function leave(member: JoinedMember, others: Others | null, reason: string): Promise<void> {
  await others?.tell(reason)
  await close(member)
}

async function close(member: JoinedMember | null): Promise<void> {
  // It rejects again with the error of `shutdown`, which was reported.
  await member?.close().catch(() => {})
}

/** Null: main is done, here and everywhere. */
async function ofMain(
  member: JoinedMember,
  others: Others,
  main: () => unknown,
  { timeout = 0, grace = GRACE_MS }: RunOptions,
): Promise<{ readonly thrown: unknown; readonly isLost: boolean } | null> {
  let isMainDone = false
  let timer: NodeJS.Timeout | undefined
  const ran = (async () => {
    try {
      await member.run(main)
      isMainDone = true
      // Others may still call this worker.
      await member.shutdown()
      return null
    } catch (thrown) {
      const isLost = isMainDone || deathIn(thrown) !== null
      return { thrown: isLost ? await others.why(thrown) : thrown, isLost }
    }
  })()
  const late = new Promise<{ thrown: unknown; isLost: boolean }>((resolve) => {
    if (timeout > 0) timer = setTimeout(() => resolve({ thrown: timedOut(timeout), isLost: false }), timeout)
  })
  /** By then main's own waits have rejected, and it has cleaned up. */
  const graceOver = async (): Promise<null> => {
    let over: NodeJS.Timeout | undefined
    await Promise.race([
      ran,
      new Promise((resolve) => {
        over = setTimeout(resolve, grace)
      }),
    ])
    clearTimeout(over)
    return null
  }
  let trouble: { readonly thrown: unknown } | null = null
  const lost = others.trouble.then(async (thrown) => {
    trouble = { thrown }
    // While the store is there.
    await others.tellOf(thrown)
    await close(member)
    return graceOver()
  })
  const left = member.closed.then(graceOver)
  try {
    const end = await Promise.race([ran, late, lost, left])
    // Why main ended is then what came of it.
    const { thrown } = (trouble as { readonly thrown: unknown } | null) ?? {}
    return trouble === null ? end : { thrown, isLost: true }
  } finally {
    clearTimeout(timer)
  }
}
