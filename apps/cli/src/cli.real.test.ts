/** The command `postgrad` as its own process: help, mistakes, a TypeScript program, failures, signals, with and without a terminal. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { bridge } from './bridge.js'
import { main } from './commands/cli.js'
import { fixture, MAIN, PROGRAM, postgrad, run, TYPESCRIPT } from './process.fixture.js'
import { surroundings } from './surroundings.fixture.js'

/** The command in this process, for what it says before it runs anything. */
async function here(...args: readonly string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const around = surroundings()
  const code = await main(args, '0.0.0', around, bridge)
  return { code, out: around.out(), err: around.err() }
}

describe('replay', () => {
  test('TK-27 repeats a failed run of a program by its token, in JavaScript and in TypeScript, and shows what happened', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'postgrad-replay-'))
    for (const program of [fileURLToPath(new URL('./fixtures/failing-run.js', import.meta.url)), fixture('failing-run.ts')]) {
      // Printed by a process of its own, as it would be for a user.
      const script = join(directory, 'fails.mjs')
      const testing = import.meta.resolve('postgrad/testing')
      writeFileSync(
        script,
        `${program.endsWith('.ts') ? `import { register } from ${JSON.stringify(import.meta.resolve('tsx/esm/api'))}; register()` : ''}
         const { simulateProgram } = await import(${JSON.stringify(testing)})
         const ref = { program: ${JSON.stringify(program)}, export: 'main' }
         await simulateProgram(ref, { workers: 2, seed: 9, shrink: true }).catch((error) => console.log(error.stack))`,
      )
      const failed = await run(process.execPath, [script])
      const token = /Repeat it: npx postgrad replay (\S+)/.exec(failed.out)?.[1]
      expect({ failed, hasToken: token !== undefined }).toMatchObject({ hasToken: true })
      const picture = join(directory, 'run.svg')
      const { code, out, err } = await postgrad('replay', token!, '--trace', '--diagram', picture)
      expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('HELLO is too loud') })
      expect(out).toContain('worker0 → worker1: call shout #1')
      expect(readFileSync(picture, 'utf8')).toContain('HELLO is too loud')
    }
    rmSync(directory, { recursive: true })
  })

  test('TK-27 says of a wrong token what is wrong with it, and --help how it is used', async () => {
    const { code, err } = await here('replay', 'nonsense')
    expect(code).toBe(2)
    expect(err).toContain('REPLAY_TOKEN_INVALID')
    const help = await here('replay', '--help')
    expect(help.code).toBe(0)
    for (const part of ['--trace', '--diagram <file.svg>', 'POSTGRAD_REPLAY=<token>']) expect(help.out).toContain(part)
  })
})

describe('help and mistakes', () => {
  test('--help lists the commands', async () => {
    const { code, out } = await postgrad('--help')
    expect(code).toBe(0)
    expect(out).toMatch(/Usage: postgrad/)
    expect(out).toMatch(/run \[options\] <program>/)
    expect(out).toMatch(/replay \[options\] <token>/)
  })

  test('run --help explains the options and shows a program', async () => {
    const { code, out } = await here('run', '--help')
    expect(code).toBe(0)
    for (const part of ['--workers', '--device', '"wasm", "js"', '--seed', '--timeout', 'export default async function main'])
      expect(out).toContain(part)
  })

  test('--version', async () => {
    const { code, out } = await postgrad('--version')
    expect(code).toBe(0)
    expect(out).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  test('a mistake is told on stderr, and by the exit code', async () => {
    const { code, out, err } = await postgrad('rnu', PROGRAM)
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/unknown command 'rnu'[\s\S]*Did you mean run/)
  })

  test.each<[readonly string[], RegExp]>([
    [['help', 'rnu'], /^error: unknown command 'rnu'\n.Did you mean run/],
    [['run', PROGRAM, '--worker', '2'], /unknown option '--worker'[\s\S]*Did you mean --workers/],
    [['run'], /missing required argument 'program'/],
    [['run', PROGRAM, '--device', 'abacus'], /'abacus' is invalid[\s\S]*Allowed choices are wasm/],
    [['run', PROGRAM, '--seed', 'x'], /An integer is expected/],
    [['run', PROGRAM, '--timeout', '-1'], /milliseconds/],
    [['run', PROGRAM, '--grace', '8589934592'], /24\.8 days/],
    [['run', PROGRAM, '--workers', '0'], /1 to 65535 workers/],
    [['run', PROGRAM, '--max-restarts', '0'], /An integer from 1 is expected/],
    [['run', PROGRAM, '--restart', 'some'], /'some' is invalid[\s\S]*Allowed choices are none, all, failed/],
    [['run', PROGRAM, '--ports', '9-1'], /FROM-TO is expected/],
    [['run', PROGRAM, '--master', 'here'], /HOST:PORT is expected/],
    [['run', PROGRAM, '--rank', '-1'], /An integer from 0 is expected/],
    [['run', PROGRAM, '--rank', '0', '--master', 'a:1'], /--world-size is missing/],
    [['run', PROGRAM, '--workers', '2', '--processes', '3'], /--processes 3 is more than there are workers: 2/],
    [['top', '-n', '0'], /An integer from 1 is expected/],
    [['completion', 'tcsh'], /'tcsh' is invalid[\s\S]*bash, zsh, fish/],
    [['run', PROGRAM, '--workers', 'two'], /Write a count \(2\), names \(a,b\), or one name with a comma after it \(two,\)/],
  ])('%j is refused with what to do', async (args, message) => {
    const { code, out, err } = await here(...args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(message)
  })

  test('without a command the help is shown, and it is an error', async () => {
    const { code, err } = await here()
    expect(code).not.toBe(0)
    expect(err).toContain('Usage: postgrad')
  })
})

test.each(['run', 'ps', 'top', 'doctor', 'keygen', 'replay', 'completion'])('%s --help has an example', async (command) => {
  const { code, out } = await here(command, '--help')
  expect(code).toBe(0)
  expect(out).toMatch(new RegExp(`Examples?:\n  \\$ .*postgrad ${command}`))
})

test.each<[NodeJS.Signals, number]>([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
])('CLI-71 %s ends doctor with %i, and leaves nothing behind', async (signal, exitCode) => {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-cli-'))
  try {
    const env = { TMPDIR: folder, XDG_RUNTIME_DIR: folder }
    // So many ports take longer than the signal.
    const { code, out } = await run(process.execPath, [MAIN, 'doctor', '--ports', '20000-29999'], (_, kill) => kill(signal), env)
    expect(code).toBe(exitCode)
    expect(out).not.toContain('launcher')
    expect(readdirSync(folder).filter((name) => name.startsWith('postgrad-doctor'))).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** Leaves so many open files as FREE says. */
const FILL = `
const { closeSync, openSync } = require('node:fs')
const held = []
try { for (;;) held.push(openSync('/dev/null')) } catch {}
for (const file of held.splice(-Number(process.env.FREE))) closeSync(file)
`
/** What a stream says whose terminal has gone. */
const NO_TERMINAL = `
process.on('SIGHUP', () => process.stdout.emit('error', Object.assign(new Error('write EIO'), { code: 'EIO' })))
`
const testLimits = process.platform === 'win32' ? test.skip : test

testLimits('CLU-67 where the system gives no files for the modules of the command it ends with 3, and says what to do', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postgrad-cli-'))
  try {
    const fill = join(folder, 'fill.cjs')
    writeFileSync(fill, FILL)
    const limited = ['-c', `ulimit -n 200; exec ${process.execPath} --require ${fill} ${MAIN} --version`]
    // How many files Node itself needs, and how many modules it loads at once, differs between versions.
    const ends = await Promise.all([1, 2, 3, 6].map((FREE) => run('bash', limited, undefined, { FREE: `${FREE}` })))
    const failed = ends.filter(({ code }) => code !== 0)
    expect(failed).not.toEqual([])
    for (const { code, out, err } of failed) {
      expect([code, out]).toEqual([3, ''])
      expect(err).toMatch(
        /^postgrad: the command could not be loaded: .*too many open files.* \(ulimit -n 4096\)\.\n {2}code: TOO_MANY_OPEN_FILES\n$/,
      )
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

describe('run, without a terminal', () => {
  test('a TypeScript program runs on every worker; stdout has its output alone, stderr plain lines', async () => {
    const { code, out, err } = await postgrad('run', TYPESCRIPT, '--workers', 'a,b', '--seed', '3', '--', 'calls', '-x', 'y')
    expect(err).toContain('[a] running\n')
    expect(code).toBe(0)
    expect(out.trim().split('\n').sort()).toEqual(['a 0/2 a 0 1 -x+y', 'b 1/2 b 2 2 -x+y'])
    for (const name of ['a', 'b']) {
      expect(err).toContain(`[${name}] 1/2 (50%) half of ${name}\n`)
      expect(err).toContain(`[${name}] 2/2 (100%)\n[${name}] done\n`)
    }
  })

  test("a folder of one's own without a package.json will do", async () => {
    const folder = mkdtempSync(join(tmpdir(), 'postgrad-cli-'))
    try {
      mkdirSync(join(folder, 'node_modules'))
      // As an installation would leave it; the program's imports are found from where it lies.
      symlinkSync(
        dirname(createRequire(import.meta.url).resolve('postgrad/package.json')),
        join(folder, 'node_modules/postgrad'),
        'junction',
      )
      cpSync(TYPESCRIPT, join(folder, 'program.ts'))
      writeFileSync(join(folder, 'word.ts'), "export const word: string = 'found'\n")
      writeFileSync(
        join(folder, 'start.ts'),
        "import { word } from './word.js'\nimport main from './program.js'\nexport default (context: any) => main({ ...context, args: ['calls', word] })\n",
      )
      const { code, out, err } = await postgrad('run', join(folder, 'start.ts'))
      expect(err).toContain('[worker0] done\n')
      expect([code, out]).toEqual([0, 'worker0 0/1 worker0 0 1 found\n'])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('a reader that has seen enough ends the run, without a stack', async () => {
    const { code, out, err } = await run('bash', [
      '-c',
      `${process.execPath} ${MAIN} run ${PROGRAM} -- flood | head -n 1; exit \${PIPESTATUS[0]}`,
    ])
    expect([code, out]).toEqual([141, 'line 0\n'])
    expect(err).not.toContain('EPIPE')
  })

  const full = existsSync('/dev/full') ? test : test.skip
  full.each([['--help'], ['doctor'], ['run', PROGRAM]])('output that cannot be written: %s says so, without a stack', async (...args) => {
    const { code, err } = await run('bash', ['-c', `${process.execPath} ${MAIN} ${args.join(' ')} > /dev/full`])
    expect(code).toBe(1)
    expect(err).toMatch(/^postgrad: the output cannot be written: ENOSPC.*\n$/m)
    expect(err).not.toContain('    at ')
  })

  test('--timeout 0 is no limit', async () => {
    expect((await postgrad('run', PROGRAM, '--timeout', '0')).code).toBe(0)
  })

  test('--workers N names them; the device is passed on', async () => {
    const { code, out } = await postgrad('run', PROGRAM, '--workers', '2', '--device', 'js')
    expect(code).toBe(0)
    expect(out.trim().split('\n').sort()).toEqual(['worker0 0/2 worker0 0 1 none', 'worker1 1/2 worker1 2 2 none'])
  })

  test('the first failure ends all workers and is told with worker, class, code, cause and stack', async () => {
    const { code, err } = await postgrad('run', TYPESCRIPT, '--workers', '2', '--', 'fail')
    expect(code).toBe(1)
    expect(err).toContain("postgrad: worker 'worker1' failed: RangeError: rank 1 is out of luck\n")
    expect(err).toContain('caused by: Error: the deeper reason\n')
    expect(err).toContain('program.ts')
    expect(err).toContain('[worker1] failed\n')
    expect(err).toContain('[worker0] stopped\n')
  })

  test('a typed error brings its code and remedy', async () => {
    const { code, err } = await postgrad('run', PROGRAM, '--', 'unknown')
    expect(code).toBe(1)
    expect(err).toContain('code: UNKNOWN_WORKER\n')
  })

  test('when a worker dies, it is named with the reason, not those who noticed', async () => {
    const { code, err } = await postgrad('run', PROGRAM, '--workers', '3', '--', 'die')
    expect(code).toBe(4)
    expect(err).toContain("postgrad: worker 'worker1' failed: ")
    expect(err).toContain('TypeError: nobody catches this')
    expect(err).toContain('[worker1] died\n')
    for (const name of ['worker0', 'worker2']) expect(err).toContain(`[${name}] stopped\n`)
    expect(err).toContain('code: WORKER_DIED\n')
  })

  test('a program that is not there, one without a default export, a bad name', async () => {
    const [missing, noMain, name] = await Promise.all([
      postgrad('run', 'nowhere.ts'),
      postgrad('run', fileURLToPath(new URL('./fixtures/no-main.js', import.meta.url))),
      postgrad('run', PROGRAM, '--workers', 'a,a'),
    ])
    expect([missing.code, noMain.code, name.code]).toEqual([3, 3, 2])
    expect(missing.err).toContain("cause's code: PROGRAM_NOT_FOUND\n")
    expect(noMain.err).toContain('code: MAIN_MISSING\n')
    expect(noMain.err).toContain('export default async function main')
    expect(name.err).toContain('code: WORKER_NAME_DUPLICATE\n')
  })

  test('CLU-60 lines of several workers that are written in parts stay whole on a pipe', async () => {
    const { code, out } = await postgrad('run', PROGRAM, '--workers', '2', '--', 'parts')
    expect(code).toBe(0)
    const lines = out.trimEnd().split('\n')
    for (const name of ['worker0', 'worker1'])
      expect(lines.filter((line) => line.startsWith(name))).toEqual(Array.from({ length: 200 }, (_, i) => `${name} one two ${i}`))
    expect(lines).toHaveLength(400)
  })

  test('CLU-61 one name has a comma behind it', async () => {
    const { code, out } = await postgrad('run', PROGRAM, '--workers', 'two,')
    expect([code, out]).toEqual([0, 'two 0/1 two 0 1 none\n'])
  })

  test('CLU-62 a worker that exits with 0 is done, and the others go on; with another code it has failed', async () => {
    const well = await postgrad('run', PROGRAM, '--workers', '2', '--', 'exit', '0')
    expect([well.code, well.out]).toEqual([0, 'worker0 went on\n'])
    expect(well.err).toContain('[worker1] done\n')
    const badly = await postgrad('run', PROGRAM, '--workers', '2', '--', 'exit', '3')
    expect(badly.code).toBe(4)
    expect(badly.err).toContain('exit code 3')
  })

  test.each([
    ['CLU-63 --grace gives time to clean up after Ctrl-C', ['--grace', '5000'], 2],
    ['CLU-63 half a second by default', [], 0],
  ] as const)('%s', async (_, options, cleaned) => {
    let sent = false
    const args = [MAIN, 'run', PROGRAM, '--workers', '2', ...options, '--', 'clean']
    const { code, out } = await run(process.execPath, args, (soFar, kill) => {
      if (sent || !(soFar.includes('worker0 waits') && soFar.includes('worker1 waits'))) return
      sent = true
      kill('SIGINT')
    })
    expect(code).toBe(130)
    expect(out.match(/has cleaned up/g) ?? []).toHaveLength(cleaned)
  })

  test('CLU-63 also after SIGHUP, when nothing can be written to the terminal any more', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'postgrad-cli-'))
    try {
      const preload = join(folder, 'no-terminal.cjs')
      writeFileSync(preload, NO_TERMINAL)
      let sent = false
      const args = ['--require', preload, MAIN, 'run', PROGRAM, '--workers', '2', '--grace', '5000', '--', 'clean']
      const { code, out } = await run(process.execPath, args, (soFar, kill) => {
        if (sent || !(soFar.includes('worker0 waits') && soFar.includes('worker1 waits'))) return
        sent = true
        kill('SIGHUP')
      })
      expect(code).toBe(129)
      expect(out.match(/has cleaned up/g) ?? []).toHaveLength(2)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('--timeout ends a run that takes too long', async () => {
    const { code, err } = await postgrad('run', PROGRAM, '--timeout', '200', '--', 'forever')
    expect(code).toBe(1)
    expect(err).toMatch(
      /worker 'worker0' failed: run: main took longer than --timeout 200 ms\. .*\n {2}code: RUN_TIMEOUT\n {2}more: npx postgrad explain RUN_TIMEOUT\n$/,
    )
  })

  test.each<[NodeJS.Signals, number]>([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])('CLI-51 %s closes the cluster, removes the socket of the run and exits with %i', async (signal, exitCode) => {
    let sent = false
    const folder = mkdtempSync(join(tmpdir(), 'pg-'))
    const { code, err } = await run(
      process.execPath,
      [MAIN, 'run', signal === 'SIGINT' ? TYPESCRIPT : PROGRAM, '--workers', '2', '--', 'forever'],
      (out, kill) => {
        if (sent || !(out.includes('worker0 waits') && out.includes('worker1 waits'))) return
        sent = true
        kill(signal)
      },
      { XDG_RUNTIME_DIR: folder },
    )
    expect(readdirSync(join(folder, 'postgrad'))).toEqual([])
    rmSync(folder, { recursive: true, force: true })
    expect(code).toBe(exitCode)
    expect(err).toContain(`postgrad: stopped by ${signal}\n`)
    expect(err).toContain('[worker0] stopped\n')
  })
})

/** util-linux's `script` gives a process a terminal; where it is missing, this cannot be seen from outside. */
const describeTerminal = process.platform === 'linux' && existsSync('/usr/bin/script') ? describe : describe.skip

describeTerminal('run, on a terminal', () => {
  test('stderr that was sent elsewhere goes there', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'postgrad-cli-'))
    try {
      const file = join(folder, 'err')
      const { code, out } = await run('/usr/bin/script', [
        '-qec',
        `${process.execPath} ${MAIN} run ${PROGRAM} -- complain 2>${file}`,
        '/dev/null',
      ])
      expect(code).toBe(0)
      expect(readFileSync(file, 'utf8')).toBe('a complaint\n')
      expect(out).not.toContain('a complaint')
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('CLU-60 a warning of the main process comes above the bars, in the write that draws them again', async () => {
    const warns = `import { isMainThread } from 'node:worker_threads'; 
      if (isMainThread) {
        const { write } = process.stdout
        process.stdout.write = function (text, ...rest) {
          if (text.includes('worker0 waits')) setTimeout(() => process.emitWarning('of the main process'), 200)
          return write.call(this, text, ...rest)
        }
      }`
    const node = `${process.execPath} --import 'data:text/javascript,${encodeURIComponent(warns).replaceAll("'", '%27')}'`
    const command = `stty cols 120 2>/dev/null; ${node} ${MAIN} run ${PROGRAM} --workers 2 --timeout 4000 -- forever`
    const { out } = await run('/usr/bin/script', ['-qec', command, '/dev/null'])
    expect(out.split('of the main process')).toHaveLength(2)
    const erased = '\u001b[0J'
    expect(out.slice(out.lastIndexOf(erased, out.indexOf('of the main process')) + erased.length)).toMatch(
      /^\(node:\d+\) Warning: of the main process\r?\n/,
    )
  })

  test('one line per worker that is redrawn, with what the program prints above', async () => {
    const command = `stty cols 120 2>/dev/null; ${process.execPath} ${MAIN} run ${PROGRAM} --workers 2`
    const { code, out } = await run('/usr/bin/script', ['-qec', command, '/dev/null'])
    expect(code).toBe(0)
    expect(out).toContain('\u001b[')
    expect(out).toMatch(/worker1 {2}done {6}█+ {2}?2\/2|worker1 {2}done .*2\/2/)
    expect(out).toContain('worker0 0/2 worker0 0 1')
    expect(out).not.toContain('[worker0] running')
  })
})
