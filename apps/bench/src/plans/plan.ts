/** Shared by the rows: figures, and how they name PyTorch's part. */
import type { RowPlan } from '../row.js'

/** PyTorch's function of that name as a peer, doing its work `share` as often; nothing where PyTorch is not there. */
export type TorchWork = (name: string, share: number, ...args: readonly number[]) => RowPlan['peers']

export const microseconds = (seconds: number, n: number): number => (seconds / n) * 1e6
export const milliseconds = (seconds: number, n: number): number => (seconds / n) * 1e3

/** PyTorch's figure among the peers', if it was there. */
export function torchOf(peers: Readonly<Record<string, number>>): number | null {
  const name = Object.keys(peers).find((peer) => peer.startsWith('pytorch'))
  return name === undefined ? null : peers[name]!
}
