/**
 * How the workers of a group of known size find each other by a store: each says who it is and where it can be reached, and goes on when all have. What is
 * said lies under the group's cluster and round, so a group that is started again in a new round reads nothing of the last. Groups whose members come and go:
 * `members.ts`. PyTorch: `torch.distributed.rendezvous`, and torchelastic's rounds.
 *
 *     rendezvous/<cluster>/<round>/size         what all must agree in: how many, and whether they choose their ranks
 *                                  name/<name>  who has the name
 *                                  rank/<rank>  who has the rank, and where it is
 *                                  came/<rank>  stays when who had the rank gives up
 *                                  all          the list, from rank 0 when all are there
 */
import { isPostgradError, PostgradError } from '@postgrad/base'
import { timeLimit } from '@postgrad/base/internal'
import type { Clock } from '../clock.js'
import { PrefixStore } from './prefix-store.js'
import type { Store, StoreWaitOptions } from './store.js'
import { textOf } from './store-values.js'

/** One worker of a group. */
export interface RendezvousMember {
  readonly name: string
  readonly rank: number
  /** As 'tcp://host:port' or 'unix:/path'. */
  readonly addresses: readonly string[]
  /** Its number in the cluster: the rank. */
  readonly id: number
}

/** Of `rendezvous`. */
export interface RendezvousOptions {
  /** Unique in the group. */
  readonly name: string
  /** All say theirs, or none: then ranks go by arrival. */
  readonly rank?: number
  /** All say the same. */
  readonly worldSize: number
  /** Where others reach this worker: 'tcp://host:port' or 'unix:/path'. */
  readonly addresses: readonly string[]
  /** Keeps clusters apart that share a store. Default 'default'. */
  readonly cluster?: string
  /** A group that is started again begins a new one: torchelastic's TORCHELASTIC_RESTART_COUNT. Default 0. */
  readonly round?: number
  /** In ms; default 300,000; 0 is no limit. */
  readonly timeoutMs?: number
  readonly clock: Clock
  readonly signal?: AbortSignal
  /** The store's address, for errors. */
  readonly where?: string
}

/** All of a group, in the order of their ranks, and which of them this worker is. */
export interface Rendezvous {
  readonly members: readonly RendezvousMember[]
  readonly rank: number
  readonly round: number
}

type Entry = Pick<RendezvousMember, 'name' | 'addresses'>

const TIMEOUT_MS = 300_000

/**
 * Resolves when all of the group have come. A worker that fails here takes back what it has said, so that it can try again.
 * @throws (rejects) RENDEZVOUS_CONFLICT (a name or rank that another has, sizes that differ, one too many), RENDEZVOUS_TIMEOUT with the ranks that are
 * missing, INVALID_ARGUMENT, TIMEOUT_INVALID, STORE_CANCELLED, and what the store says
 */
export async function rendezvous(store: Store, options: RendezvousOptions): Promise<Rendezvous> {
  check(options)
  const { cluster = 'default', round = 0, timeoutMs = TIMEOUT_MS, clock } = options
  const limitMs = timeLimit('rendezvous', timeoutMs)
  const sinceMs = clock.now()
  /** What is left of the time; a store's 0 is no limit. */
  const left = (): StoreWaitOptions => {
    const ms = Number.isFinite(limitMs) ? Math.max(1, limitMs - (clock.now() - sinceMs)) : 0
    return options.signal === undefined ? { timeoutMs: ms } : { timeoutMs: ms, signal: options.signal }
  }
  const group = new PrefixStore(`rendezvous/${encodeURIComponent(cluster)}/${round}`, store)
  await agree(group, options)
  const entry: Entry = { name: options.name, addresses: [...options.addresses] }
  await claimName(group, entry, options)
  let rank = -1
  try {
    rank = await claimRank(group, entry, options)
    await group.set(cameKey(rank), entry.name)
    const members = rank === 0 ? await collect(group, options.worldSize, left) : await told(group, left)
    return { members, rank, round }
  } catch (error) {
    // Somebody else's rank, or a store that has ended, needs nothing taken back.
    await Promise.allSettled([group.deleteKey(nameKey(options.name)), ...(rank < 0 ? [] : [group.deleteKey(rankKey(rank))])])
    throw isPostgradError(error, 'STORE_TIMEOUT') ? await timedOut(group, error, limitMs, options) : error
  }
}

const rankKey = (rank: number): string => `rank/${rank}`
const cameKey = (rank: number): string => `came/${rank}`
const nameKey = (name: string): string => `name/${name}`
const ranksBelow = (size: number): number[] => Array.from({ length: size }, (_, rank) => rank)

/** The first who comes says how it is. */
async function agree(group: Store, options: RendezvousOptions): Promise<void> {
  const own = `${options.worldSize} workers, ${options.rank === undefined ? 'ranks by arrival' : 'ranks of their own'}`
  const said = textOf(await group.compareSet('size', '', own))
  if (said !== own) throw conflict(options, `a group of ${said}, as the first of it said`, own)
}

async function claimName(group: Store, entry: Entry, options: RendezvousOptions): Promise<void> {
  // A number in front: who comes again with all the same is another all the same.
  const own = JSON.stringify({ ...entry, arrival: await group.add('arrivals', 1) })
  const there = textOf(await group.compareSet(nameKey(entry.name), '', own))
  if (there === own) return
  const other = parsed<Entry>('rendezvous', there)
  throw conflict(options, 'a name that no other has', `'${entry.name}' at ${placeOf(entry)}, which has come already, at ${placeOf(other)}`)
}

async function claimRank(group: Store, entry: Entry, options: RendezvousOptions): Promise<number> {
  const own = JSON.stringify(entry)
  const { worldSize } = options
  if (options.rank !== undefined) {
    const there = textOf(await group.compareSet(rankKey(options.rank), '', own))
    if (there === own) return options.rank
    const got = `'${entry.name}', where '${parsed<Entry>('rendezvous', there).name}' has come already`
    throw conflict(options, `one worker with rank ${options.rank}`, got)
  }
  // The counter says where to look first; ranks that somebody gave back are found from there on.
  const first = (await group.add('next', 1)) - 1
  for (const i of ranksBelow(worldSize)) {
    const rank = (first + i) % worldSize
    if (textOf(await group.compareSet(rankKey(rank), '', own)) === own) return rank
  }
  throw conflict(options, `${worldSize} workers`, `'${entry.name}' after all of them`)
}

/** By rank 0: for a large group one list is less to read than all entries for each. */
async function collect(group: Store, size: number, left: () => StoreWaitOptions): Promise<readonly RendezvousMember[]> {
  const keys = ranksBelow(size).map(rankKey)
  await group.wait(keys, left())
  const texts = await Promise.all(keys.map((key) => group.getText(key, left())))
  const members = texts.map((text, rank) => ({ ...parsed<Entry>('rendezvous', text), rank, id: rank }))
  await group.set('all', JSON.stringify(members))
  return members
}

async function told(group: Store, left: () => StoreWaitOptions): Promise<readonly RendezvousMember[]> {
  return parsed<RendezvousMember[]>('rendezvous', await group.getText('all', left()))
}

async function timedOut(group: Store, cause: unknown, limitMs: number, options: RendezvousOptions): Promise<PostgradError> {
  const { name, worldSize, round = 0, cluster = 'default', where } = options
  const there = await Promise.allSettled(ranksBelow(worldSize).map((rank) => group.check([cameKey(rank)])))
  const missing = ranksBelow(worldSize).filter((_, i) => (there[i] as { value?: boolean }).value === false)
  const ranks = options.rank === undefined ? `${missing.length} of ${worldSize} workers` : `rank ${missing.join(', ')} of ${worldSize}`
  const what = missing.length > 0 ? `${ranks} had not come` : 'some had given up again, or rank 0 had ended, when the last came'
  return new PostgradError('RENDEZVOUS_TIMEOUT', {
    op: 'rendezvous',
    message: `after ${Math.round(limitMs)} ms ${what}: round ${round} of '${cluster}'${where === undefined ? '' : ` at ${where}`}`,
    remedy: 'Look whether all were started, with the same store, cluster, round and size.',
    values: { name, missing, worldSize, round, cluster, timeoutMs: limitMs, ...(where === undefined ? {} : { where }) },
    cause,
  })
}

/** What stands in the store came from others. @throws STORE_VALUE_INVALID */
export function parsed<T extends object>(op: string, text: string): T {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as T
  } catch {
    // Said below.
  }
  throw new PostgradError('STORE_VALUE_INVALID', {
    op,
    expected: 'what a worker said of itself',
    got: `'${text.slice(0, 80)}'`,
    remedy: 'Somebody else uses the same keys: give each cluster a store, or a PrefixStore, of its own.',
  })
}

function check({ name, rank, worldSize, addresses, round = 0, cluster = 'default' }: RendezvousOptions): void {
  const isWhole = (n: unknown, from: number): boolean => Number.isSafeInteger(n) && (n as number) >= from
  if (!isWhole(worldSize, 1)) throw invalid('how many workers there are, as worldSize', worldSize, 'Groups without a size: joinMembers().')
  if (rank !== undefined && !(isWhole(rank, 0) && rank < worldSize)) throw invalid(`a rank from 0 to ${worldSize - 1}`, rank)
  if (typeof name !== 'string' || name === '') throw invalid('a name', name)
  if (typeof cluster !== 'string' || cluster === '') throw invalid('a name as cluster', cluster)
  if (!isWhole(round, 0)) throw invalid('a round from 0 on', round)
  checkAddresses('rendezvous', addresses)
}

/** @throws INVALID_ARGUMENT */
export function checkAddresses(op: string, addresses: readonly string[]): void {
  if (Array.isArray(addresses) && addresses.every((address) => /^(tcp|unix):./.test(address))) return
  throw invalid("addresses as 'tcp://host:port' or 'unix:/path'", addresses, '', op)
}

function invalid(expected: string, got: unknown, remedy = '', op = 'rendezvous'): PostgradError {
  return new PostgradError('INVALID_ARGUMENT', { op, expected, got: JSON.stringify(got) ?? String(got), remedy })
}

function conflict({ name, round = 0, cluster = 'default' }: RendezvousOptions, expected: string, got: string): PostgradError {
  return new PostgradError('RENDEZVOUS_CONFLICT', {
    op: 'rendezvous',
    expected,
    got,
    remedy: 'Give each worker a name and rank of its own; a group that is started again needs a new { round }.',
    values: { name, round, cluster },
  })
}

const placeOf = ({ addresses }: Entry): string => addresses.join(', ') || 'no address'
