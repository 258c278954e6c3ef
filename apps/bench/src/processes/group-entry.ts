/** One process of a group: a worker that joins by `init` and does what `process-group.ts` says. */
import { init } from 'postgrad'
import { designNote, pipelined, roundTrip } from '../program.js'
import type { GroupBoot, GroupCommand } from './process-group.js'
import { tensorsOneWay } from './tensors.js'

type Work = (...args: number[]) => Promise<number>
const WORKS: Readonly<Record<string, Work>> = { roundTrip, pipelined, designNote, tensorsOneWay } as Record<string, Work>

type Member = Awaited<ReturnType<typeof init>>
let member: Member | null = null

async function hear(message: GroupBoot | GroupCommand): Promise<number> {
  if ('name' in message) return member!.run(() => WORKS[message.name]!(...message.args))
  const { credentials, ...options } = message
  member = await init({ ...options, transports: ['tcp'], ...(credentials === null ? {} : { credentials }) })
  return 0
}

process.on('message', (message: GroupBoot | GroupCommand) => {
  void hear(message).then((value) => process.send!({ value }))
})
process.on('disconnect', () => process.exit(0))
