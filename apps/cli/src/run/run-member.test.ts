/** A process that joins others, with the test's own runtime instead of the bridge: its requests to it, and its exit codes. */
import { describe, expect, test } from '@jest/globals'
import { HashStore, type MainContext, PostgradError, type WorkerInfo } from 'postgrad'
import type { Bridge, JoinedMember, JoinOptions } from '../bridge.js'
import { surroundings, type TestSurroundings } from '../surroundings.fixture.js'
import { run } from './run-command.js'
import type { RunOptions } from './run-options.js'

const FLAGS: RunOptions = { rank: 1, worldSize: 2, master: { host: 'node1', port: 29_500 }, status: false, grace: 10 }

interface Play {
  readonly main: (context: MainContext) => unknown
  readonly init?: () => void
  readonly load?: () => void
  readonly shutdown?: () => Promise<void>
}

/** A bridge, and what was asked of it, in order. */
function bridgeOf({ main, init, load, shutdown }: Play) {
  const asked: string[] = []
  let options: JoinOptions | null = null
  let stalls: Parameters<JoinedMember['onWorkerStalled']>[0] | null = null
  let recoveries: Parameters<JoinedMember['onWorkerRecovered']>[0] | null = null
  // Nothing of it waits for a time.
  const store = new HashStore({ now: () => 0, setTimer: () => ({ cancel: () => {} }) } as never)
  let close: () => void = () => {}
  const closed = new Promise<void>((resolve) => {
    close = resolve
  })
  const bridge: Bridge = {
    launch: () => Promise.reject(new Error('nobody asks for that')),
    importMain: async (program) => {
      asked.push(`load ${program}`)
      load?.()
      return main
    },
    join: async (given): Promise<JoinedMember> => {
      asked.push('init')
      options = given
      init?.()
      return {
        worker: { info: { name: given.name, id: given.rank }, workers: () => [] } as unknown as JoinedMember['worker'],
        store,
        shutdown: async () => {
          asked.push('shutdown')
          await shutdown?.()
        },
        run: async (fn, ...args) => {
          // Not what watches the others.
          if (String(fn).includes('main')) asked.push('run')
          return (await fn(...args)) as never
        },
        close: async () => {
          asked.push('close')
          close()
        },
        closed,
        onStoreLost: () => () => {},
        onWorkerStalled: (fn) => {
          stalls = fn
          return () => {}
        },
        onWorkerRecovered: (fn) => {
          recoveries = fn
          return () => {}
        },
      }
    },
  }
  const stall = (name: string): void => {
    const worker = { name } as WorkerInfo
    stalls?.(worker, new PostgradError('WORKER_STALLED', { op: 'init', message: 'it stands still', values: { silentMs: 3000 } }))
    recoveries?.(worker)
  }
  return { bridge, asked, store, options: () => options, stall }
}

const play = (play: Play, options: RunOptions = FLAGS, around: TestSurroundings = surroundings()) => {
  const { bridge, ...rest } = bridgeOf(play)
  return { ...rest, around, code: run('p.js', ['x'], options, around, bridge) }
}

const gone = (): PostgradError =>
  new PostgradError('WORKER_DIED', { op: 'call', message: 'worker0 is gone', values: { worker: 'worker0', cause: 'left' } })

describe('one worker of several processes', () => {
  test('CLI-40 loads, joins, runs main, waits for the others, leaves', async () => {
    const contexts: MainContext[] = []
    const { asked, options, around, code } = play(
      { main: (context) => contexts.push(context) },
      {
        ...FLAGS,
        key: 'k',
        role: 'r',
        bind: '0.0.0.0',
        advertise: 'me',
        ports: [5, 6],
        remoteStacks: false,
        joinTimeout: 7,
        seed: 3,
        device: 'wasm',
        rpcTimeout: 9,
      },
    )
    expect(await code).toBe(0)
    expect(asked).toEqual(['load p.js', 'init', 'run', 'shutdown', 'close'])
    expect(options()).toEqual({
      name: 'worker1',
      rank: 1,
      worldSize: 2,
      initMethod: 'tcp://node1:29500',
      credentials: { kind: 'key', file: 'k', role: 'r' },
      bind: '0.0.0.0',
      advertise: 'me',
      ports: [5, 6],
      remoteStacks: false,
      timeoutMs: 7,
      seed: 3,
      device: 'wasm',
      rpcTimeoutMs: 9,
      onConnectionRefused: expect.any(Function),
    })
    expect(contexts).toEqual([{ name: 'worker1', rank: 1, worldSize: 2, args: ['x'] }])
    expect(around.err()).toContain('postgrad: rank 1 of 2 by flags; meets the others at node1:29500\n')
  })

  test('CLI-46 a connection that this process refuses is one line, and does not end the run', async () => {
    const refused = new PostgradError('AUTH_FAILED', {
      op: 'init',
      message: 'refused a connection from 10.0.0.2: AUTH_FAILED (its key differs)',
      remedy: 'Give both ends the same key file.',
    })
    const { options, around, code } = play({ main: () => options()?.onConnectionRefused?.(refused) })
    expect(await code).toBe(0)
    expect(around.err()).toContain(
      'postgrad: refused a connection from 10.0.0.2: AUTH_FAILED (its key differs). Give both ends the same key file.\n',
    )
  })

  test.each<[NonNullable<RunOptions['output']>, RegExp]>([
    ['plain', /\[worker0\] stalled: no turn for 3 s\n\[worker0\] recovered\n/],
    ['json', /"worker":"worker0","event":"stalled","silentMs":3000}\n.*"worker":"worker0","event":"recovered"}\n/],
  ])('CLI-23 another worker that stands still, and goes on, is told of: %s', async (output, expected) => {
    const { around, stall, code } = play({ main: () => stall('worker0') }, { ...FLAGS, output })
    expect(await code).toBe(0)
    expect(output === 'json' ? around.out() : around.err()).toMatch(expected)
  })

  test('CLI-1 by variables, with names of its own, and the launcher’s count of restarts', async () => {
    const env = { RANK: '0', WORLD_SIZE: '2', MASTER_ADDR: '::1', MASTER_PORT: '5', TORCHELASTIC_RESTART_COUNT: '4' }
    const { options, around, code } = play({ main: () => {} }, { workers: ['ps', 'trainer'], status: false }, surroundings({ env }))
    expect(await code).toBe(0)
    expect(options()).toMatchObject({ name: 'ps', rank: 0, initMethod: 'tcp://[::1]:5' })
    expect(around.env.POSTGRAD_RESTART_COUNT).toBe('4')
  })

  test.each<[string, Partial<Play>]>([
    [
      'cannot be loaded',
      {
        load: () => {
          throw new PostgradError('PROGRAM_NOT_FOUND', { op: 'program', message: 'no such file' })
        },
      },
    ],
    [
      'cannot join',
      {
        init: () => {
          throw new PostgradError('CONNECT_FAILED', { op: 'init', message: 'nobody listens at node1:29500' })
        },
      },
    ],
  ])('CLI-40 what %s is 3', async (_, parts) => {
    const { asked, around, code } = play({ main: () => {}, ...parts })
    expect(await code).toBe(3)
    expect(asked).not.toContain('run')
    expect(around.err()).toMatch(/code: (PROGRAM_NOT_FOUND|CONNECT_FAILED)/)
  })

  test('CLI-3 half of an environment is 2, before anything is loaded', async () => {
    const { asked, around, code } = play({ main: () => {} }, {}, surroundings({ env: { RANK: '0' } }))
    expect([await code, asked]).toEqual([2, []])
    expect(around.err()).toContain('WORLD_SIZE is missing')
  })

  test('CLI-41 a main that throws is 1, and nobody is waited for', async () => {
    const { asked, around, code } = play({
      main: () => {
        throw new RangeError('too much')
      },
    })
    expect(await code).toBe(1)
    expect(asked).toEqual(['load p.js', 'init', 'run', 'close'])
    expect(around.err()).toContain("postgrad: worker 'worker1' failed: RangeError: too much\n")
  })

  test('CLI-41 lost: main hears of it, or the others die while it waits for their end', async () => {
    const heard = play({
      main: () => {
        throw gone()
      },
    })
    expect(await heard.code).toBe(4)
    const broken = play({ main: () => Promise.reject(new PostgradError('GROUP_BROKEN', { op: 'allReduce', message: 'x', cause: gone() })) })
    expect(await broken.code).toBe(4)
    expect(broken.around.err()).toContain('[worker1] stopped\n')
    // Others may have no connection to the dead one, and it is not this one that has failed.
    expect(JSON.parse(await broken.store.getText('postgrad run/failed'))).toEqual({ worker: 'worker0', reason: 'it has left' })
    const waiting = play({ main: () => {}, shutdown: () => Promise.reject(gone()) })
    expect(await waiting.code).toBe(4)
  })

  test('CLI-44 whoever fails tells the others, with the reason; whoever hears of it ends, though main waits for nobody', async () => {
    const failing = play({ main: () => Promise.reject(new Error('no data')) })
    expect(await failing.code).toBe(1)
    expect(JSON.parse(await failing.store.getText('postgrad run/failed'))).toEqual({ worker: 'worker1', reason: 'no data' })

    const waiting = play({ main: () => new Promise(() => {}) })
    await waiting.store.set('postgrad run/failed', JSON.stringify({ worker: 'worker0', reason: 'no data' }))
    expect(await waiting.code).toBe(4)
    expect(waiting.around.err()).toContain("worker 'worker0' has failed, so all others end: no data")
    expect(waiting.asked).toContain('close')
  })

  test('CLI-44 why another one has ended is what it has said, also where its death is heard of first', async () => {
    const dying = play({
      main: () => {
        setTimeout(() => dying.store.set('postgrad run/failed', JSON.stringify({ worker: 'worker0', reason: 'stopped by SIGINT' })), 20)
        throw gone()
      },
    })
    expect(await dying.code).toBe(4)
    expect(dying.around.err()).toContain("worker 'worker0' has failed, so all others end: stopped by SIGINT")
    expect(dying.around.err()).not.toContain('WORKER_DIED')
  })

  test('CLI-41 --timeout', async () => {
    const { around, code } = play({ main: () => new Promise(() => {}) }, { ...FLAGS, timeout: 5 })
    expect(await code).toBe(1)
    expect(around.err()).toMatch(
      /worker 'worker1' failed: run: main took longer than --timeout 5 ms\. .*\n {2}code: RUN_TIMEOUT\n {2}more: npx postgrad explain RUN_TIMEOUT\n$/,
    )
  })

  test('CLU-63 a shell sends SIGHUP twice when its terminal closes: that ends nothing at once', async () => {
    const around = surroundings()
    const { asked, code } = play({ main: () => new Promise(() => {}) }, FLAGS, around)
    while (!asked.includes('run')) await new Promise(setImmediate)
    for (let i = 0; i < 2; i++) around.signal('SIGHUP')
    expect(around.exited).toEqual([])
    around.signal('SIGINT')
    expect(around.exited).toEqual([130])
    void code
  })

  test('CLI-42 a signal makes it leave; a second one ends the process, and so does one before it has joined', async () => {
    const around = surroundings()
    let reject: (error: Error) => void = () => {}
    const { asked, code } = play(
      {
        main: () =>
          new Promise((_, no) => {
            reject = no
          }),
      },
      FLAGS,
      around,
    )
    while (!asked.includes('run')) await new Promise(setImmediate)
    around.signal('SIGTERM')
    expect(around.exited).toEqual([])
    around.signal('SIGINT')
    expect(around.exited).toEqual([130])
    reject(gone())
    expect(await code).toBe(143)
    expect(around.err()).toContain('stopped by SIGTERM')

    const early = surroundings()
    const starting = play({ main: () => {} }, FLAGS, early)
    early.signal('SIGINT')
    expect(early.exited).toEqual([130])
    expect(early.err()).toContain('postgrad: stopped by SIGINT\n')
    await starting.code
  })

  test('CLI-43 what the program prints here has the prefix, or is a line of JSON; the streams are as before at the end', async () => {
    for (const [options, expected] of [
      [{}, '[worker1] hello\n[worker1] rest\n'],
      [{ prefix: false }, null],
      [{ output: 'json' }, /"worker":"worker1","stream":"stdout","text":"hello"}\n/],
    ] as const) {
      const around = surroundings()
      const { write } = around.stdout
      let isCalled = false
      const { code } = play(
        {
          main: async () => {
            await new Promise<void>((resolve) => around.stdout.write('hel', () => resolve()))
            around.stdout.write(Buffer.from('lo\nrest'))
            isCalled = true
          },
        },
        { ...FLAGS, ...options },
        around,
      )
      if (expected === null) {
        // Passes byte by byte, and this stream calls nobody back.
        await new Promise((resolve) => setTimeout(resolve, 5))
        expect([around.out(), isCalled]).toEqual(['hel', false])
        around.signal('SIGINT')
        continue
      }
      expect(await code).toBe(0)
      if (typeof expected === 'string') expect(around.out()).toBe(expected)
      else expect(around.out()).toMatch(expected)
      expect(around.stdout.write).toBe(write)
    }
  })
})
