/**
 * On which device of a peer a tensor of a device of this worker arrives. A tensor of the cpu arrives on the cpu. PyTorch: `device_maps` of
 * `TensorPipeRpcBackendOptions`. Rules DEV-1 to DEV-3 in SPEC.md.
 */
import { argumentText, invalidArgument, memoryDevice } from '@postgrad/tensor/internal'
import { deviceMapMissing } from '../common/rpc-errors.js'
import type { WorkerInfo } from '../common/worker-info.js'

/** By the device of this worker, that of the other one, such as `{ gpu: 'gpu:1' }`. No two may have the same. */
export type DeviceMap = Readonly<Record<string, string>>

/** @throws INVALID_ARGUMENT; DEVICE_UNKNOWN if this worker has no such device */
export function checkDeviceMap(op: string, map: DeviceMap): [here: string, there: string][] {
  const expected = "for each device one of the other worker, each once, as in { gpu: 'gpu:1' }"
  if (typeof map !== 'object' || map === null || ![Object.prototype, null].includes(Object.getPrototypeOf(map))) {
    throw invalidArgument(op, expected, argumentText(map))
  }
  const seen = new Set<string>()
  for (const [here, there] of Object.entries(map)) {
    if (typeof there !== 'string' || there === '') throw invalidArgument(op, expected, argumentText(there))
    if (seen.has(there)) throw invalidArgument(op, expected, `'${there}' twice`)
    if (there === 'cpu')
      throw invalidArgument(op, 'a device with a memory of its own', "'cpu'", 'To send a tensor to the cpu, write await x.cpu().')
    seen.add(there)
    memoryDevice(op, here)
  }
  return Object.entries(map)
}

export class PeerDevices {
  /** As this worker has set it, and the inverse of what the peer has set for this worker. */
  private own: ReadonlyMap<string, string> = new Map()
  private inverse: ReadonlyMap<string, string> = new Map()
  private readonly peer: WorkerInfo
  /** The peer is this worker itself. */
  private readonly isSelf: boolean

  constructor(peer: WorkerInfo, isSelf: boolean) {
    this.peer = peer
    this.isSelf = isSelf
  }

  set(entries: Iterable<readonly [here: string, there: string]>): void {
    this.own = new Map(entries)
  }

  setInverse(entries: Iterable<readonly [there: string, here: string]>): void {
    this.inverse = new Map([...entries].map(([there, here]) => [here, there]))
  }

  /** Where a tensor of a device of this worker arrives. @throws DEVICE_MAP_MISSING */
  at(device: string): string {
    if (this.isSelf) return device
    const there = this.own.get(device) ?? this.inverse.get(device)
    if (there === undefined) throw deviceMapMissing(device, this.peer)
    return there
  }
}
