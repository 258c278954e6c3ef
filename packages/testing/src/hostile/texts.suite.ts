/** Texts from elsewhere: entries of a group's log, addresses in them, the names in a certificate, key files. */
import { GroupLog } from '@postgrad/cluster/internal'
import type { Store } from '@postgrad/transport'
import { parseAddress, parseKeyFile, tlsIdentity } from '@postgrad/transport/internal'
import { type Input, mutated, type Outcome, pick, promised, type Random, refusedWith, type Target, utf8, wrongJson } from './case.suite.js'

const ENTRIES: readonly Readonly<Record<string, unknown>>[] = [
  { what: 'joined', id: 1, name: 'worker1', rank: 1, worldSize: 2, visitor: 40_000, role: 'member', addresses: ['unix:/tmp/x'] },
  { what: 'left', id: 1, detail: '' },
  { what: 'died', id: 1, detail: 'it was killed' },
]
const ADDRESSES = ['tcp://127.0.0.1:80', 'tcp://[::1]:65535', 'unix:/tmp/x', 'tcp://host.example:1', 'tcp://[fe80::1%25eth0]:1']
const NAMES = [
  'URI:postgrad:c/w1?role=member',
  'URI:postgrad:c/*?role=observer&id=7',
  'DNS:a, URI:postgrad:c/w1?role=member',
  'URI:"postgrad:c/w1?role=member, x"',
]
const KEY = Buffer.alloc(32, 7).toString('base64')
const KEY_FILE = `# postgrad\nmember ${KEY}\nobserver ${Buffer.alloc(32, 8).toString('base64')}\n`
const decoder = new TextDecoder()

/** A store of one entry. */
const storeOf = (text: string): Store => ({ getText: () => Promise.resolve(text) }) as unknown as Store

const READERS: readonly ((text: string) => unknown)[] = [
  async (text) => {
    const entry = await new GroupLog(storeOf(text)).read({ timeoutMs: 1 })
    promised(
      entry.what !== 'joined' ||
        (entry.id <= 65_535 && (entry.worldSize === null || entry.rank < entry.worldSize) && entry.addresses.length <= 64),
      'an arrival in its bounds',
    )
  },
  (text) => parseAddress(text),
  (text) => tlsIdentity({ subjectaltname: text }),
  (text) => parseKeyFile(text),
]
const CODES = [/^GROUP_LOG_INVALID$/, /^ADDRESS_INVALID$/, /^AUTH_FAILED$/, /^(CREDENTIALS_INVALID|KEY_FILE_INVALID)$/]

export const texts: Target = {
  name: 'texts',
  share: 9,
  make(random: Random): Input {
    const kind = random.below(READERS.length)
    if (kind === 0) return [Uint8Array.of(kind), wrongJson(random, pick(random, ENTRIES))]
    let bytes = utf8(kind === 1 ? pick(random, ADDRESSES) : kind === 2 ? pick(random, NAMES) : KEY_FILE)
    for (let hits = random.below(4); hits > 0; hits--) bytes = mutated(random, bytes)
    return [Uint8Array.of(kind), bytes]
  },
  async feed([flags, bytes]): Promise<Outcome> {
    const kind = (flags as Uint8Array)[0] as number
    try {
      await READERS[kind]!(decoder.decode(bytes))
      return 'taken'
    } catch (error) {
      const outcome = refusedWith(error, CODES[kind] as RegExp)
      promised((error as Error).message.length < 2000, 'an error that people can read')
      promised(!(error as Error).message.includes(KEY), 'no error shows a key')
      return outcome
    }
  },
}
