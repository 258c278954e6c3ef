/** The public operations, all of the package tensor, and `detach`, which takes a tensor out of its graph. */
import type { Tensor } from '@postgrad/tensor'
import { checkedOperation, rawDetach } from '@postgrad/tensor/internal'

export * from '@postgrad/tensor/operations'
/**
 * The same elements on the same storage, without a history: the result requires no grad. PyTorch: `Tensor.detach`.
 * @example tensor([1, 2], { requiresGrad: true }).mul(2).detach().requiresGrad // false
 */
export const detach: (x: Tensor) => Tensor = checkedOperation('detach', rawDetach, ['tensor'])
