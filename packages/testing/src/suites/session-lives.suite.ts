/**
 * Frames of a former life: two workers talk over sessions, end, and talk again in new lives, while frames of the first conversation still come, anywhere between
 * those of the second. Only frames of this life are delivered, in order. `npm run mutate` uses it; in a simulated cluster every life has links of its own.
 */
import { Random, SimWorld } from '@postgrad/sim/internal'
import type { Frame, Link, LinkReceiver } from '@postgrad/transport'
import { ForwardingLink, Session } from '@postgrad/transport/internal'

const MESSAGES = 12

/** A carrier that keeps a copy of what it delivers, or brings what another has kept. */
class Tap extends ForwardingLink {
  readonly kept: Frame[] = []
  private readonly late: Frame[]
  private readonly random: Random

  constructor(link: Link, late: readonly Frame[], random: Random) {
    super(link)
    this.late = [...late]
    this.random = random
  }

  override open(receiver: LinkReceiver): void {
    this.link.open({
      onFrame: (frame) => {
        while (this.late.length > 0 && this.random.coin()) receiver.onFrame(this.late.splice(this.random.below(this.late.length), 1)[0]!)
        this.kept.push({ header: frame.header.slice(), segments: [] })
        receiver.onFrame(frame)
      },
      onTurnEnd: () => receiver.onTurnEnd(),
      onClose: (reason) => receiver.onClose(reason),
    })
  }
}

/** One conversation; returns what each end has kept. */
async function talk(
  world: SimWorld,
  life: number,
  late: readonly [readonly Frame[], readonly Frame[]],
  random: Random,
): Promise<[Frame[], Frame[]]> {
  const names = [`a${life}`, `b${life}`] as const
  const links = world.link(...names)
  const taps = [new Tap(links[0], late[0], random), new Tap(links[1], late[1], random)] as const
  const heard: string[][] = [[], []]
  const sessions = taps.map((tap, end) => {
    const session = new Session(tap, { clock: world.clockOf(names[end]!), self: 10 * life + end, peer: 10 * life + 1 - end })
    session.open({
      onFrame: ({ header }) => void heard[end]!.push(Buffer.from(header).toString()),
      onTurnEnd: () => {},
      onClose: () => {},
    })
    return session
  })
  const said = Array.from({ length: MESSAGES }, (_, i) => `life ${life}, message ${i}`)
  for (const text of said) {
    for (const session of sessions) session.send({ header: Uint8Array.from(Buffer.from(text)), segments: [] })
    await new Promise<void>((resolve) => void world.clock.setTimer(random.below(20), resolve))
  }
  await new Promise<void>((resolve) => void world.clock.setTimer(2000, resolve))
  for (const [end, texts] of heard.entries())
    if (texts.join() !== said.join()) throw new Error(`${names[end]} was sent ${said.length} messages and got: ${texts.join('; ')}`)
  for (const session of sessions) session.close()
  return [taps[0].kept, taps[1].kept]
}

export async function sessionLives(seed: number): Promise<void> {
  const world = new SimWorld(seed)
  const random = new Random(seed)
  await world.run(talk(world, 1, [[], []], random).then((kept) => talk(world, 2, kept, random)))
}
