/** Bounds the length of all gradients together. PyTorch: `torch.nn.utils.clip_grad_norm_`. */
import { type Tensor, zeros } from '@postgrad/tensor'
import { raw } from '@postgrad/tensor/internal'

/**
 * Scales the gradients in place by min(1, maxNorm / norm), where norm is the 2-norm of all of them as one vector. Nothing is read back from the
 * device.
 * @param grads the gradients, as for `Optimizer.step`; left out: `.grad`. Parameters without one do not count.
 * @returns the norm before, a tensor []
 */
export function clipGradNorm_(parameters: Iterable<Tensor>, maxNorm: number, grads?: ReadonlyMap<Tensor, Tensor>): Tensor {
  const found = Array.from(parameters, (p) => (grads === undefined ? p.grad : grads.get(p))).filter((g) => g !== null && g !== undefined)
  if (found.length === 0) return zeros([])
  const squares = found.map((g) => raw.sum(raw.mul(g, g)))
  const norm = raw.sqrt(raw.sum(raw.stack(squares)))
  // The small term is PyTorch's: it keeps 0 / 0 away.
  const factor = raw.clamp(raw.div(maxNorm, raw.add(norm, 1e-6)), null, 1)
  for (const g of found) raw.mul_(g, factor)
  return norm
}
