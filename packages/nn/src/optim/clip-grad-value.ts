/** Bounds each element of the gradients. PyTorch: `torch.nn.utils.clip_grad_value_`. */
import type { Tensor } from '@postgrad/tensor'
import { invalidArgument, rawOperations } from '@postgrad/tensor/internal'
import { type ClipGradOptions, gradientsOf } from './clip-grad-norm.js'

/**
 * Clamps the gradients in place to −clipValue … clipValue; NaN stays. PyTorch: `torch.nn.utils.clip_grad_value_`. @throws INVALID_ARGUMENT for what
 * is no list of parameters, or a clipValue that is not ≥ 0
 */
export function clipGradValue_(parameters: Iterable<Tensor> | Tensor, clipValue: number, options: ClipGradOptions = {}): void {
  if (!(clipValue >= 0)) throw invalidArgument('clipGradValue_', 'a clipValue ≥ 0', clipValue)
  for (const g of gradientsOf('clipGradValue_', parameters, options)) rawOperations.clamp_(g, -clipValue, clipValue)
}
