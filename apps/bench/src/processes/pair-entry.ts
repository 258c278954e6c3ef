/** One process of a pair: it measures, or it answers. `process-pair.ts` starts both and sends commands; `ends.ts` connects them. */
import { type End, type Meeting, meet } from './ends.js'
import { type PairAnswer, type PairBoot, type PairCommand, type Sizes, WINDOW } from './works.js'

type Hears = (command: PairCommand) => number | Promise<number>

async function begin(boot: PairBoot): Promise<[port: number, hears: Hears]> {
  let sizes: Sizes = { request: 1, reply: 1 }
  const meeting = await meet(boot, (end) =>
    end.expect(
      () => sizes.request,
      () => end.send(sizes.reply),
    ),
  )
  if (boot.role === 'measures') return [meeting.port, measuring(meeting)]
  return [
    meeting.port,
    (command) => {
      sizes = command
      return 0
    },
  ]
}

function measuring(meeting: Meeting): Hears {
  let lasting: End | null = null
  return async (command) => {
    lasting ??= await meeting.connect()
    const started = performance.now()
    if (command.work === 'connect') await connections(meeting, command)
    else await through(lasting, command, command.work === 'pipelined' ? WINDOW : 1)
    return (performance.now() - started) / 1000
  }
}

async function connections(meeting: Meeting, command: PairCommand): Promise<void> {
  for (let i = 0; i < command.n; i++) {
    const end = await meeting.connect()
    await through(end, { ...command, n: 1 }, 1)
    end.close()
  }
}

/** n messages there and n back, so many under way. */
function through(end: End, { n, request, reply }: PairCommand, atOnce: number): Promise<void> {
  return new Promise((done) => {
    let sent = 0
    let received = 0
    const send = (): void => {
      sent++
      end.send(request)
    }
    end.expect(
      () => reply,
      () => {
        if (++received === n) done()
        else if (sent < n) send()
      },
    )
    for (let i = 0; i < Math.min(n, atOnce); i++) send()
  })
}

let hears: Hears | null = null
async function hear(message: PairBoot | PairCommand): Promise<number> {
  if ('work' in message) return hears!(message)
  const [port, next] = await begin(message)
  hears = next
  return port
}

process.on('message', (message: PairBoot | PairCommand) => {
  void hear(message).then((value) => process.send!({ value } satisfies PairAnswer))
})
process.on('disconnect', () => process.exit(0))
