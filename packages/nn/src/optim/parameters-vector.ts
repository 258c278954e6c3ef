/** All parameters as one vector, and back. PyTorch: `torch.nn.utils.parameters_to_vector`, `vector_to_parameters`. */
import { cat } from '@postgrad/autograd'
import type { Tensor } from '@postgrad/tensor'
import { checkIterable, checkTensor, invalidArgument, raw, shapeMismatch, shapeText } from '@postgrad/tensor/internal'

/**
 * The elements of all parameters, one after the other, as one vector [n]. The operation is recorded. PyTorch: `torch.nn.utils.parameters_to_vector`.
 * @throws INVALID_ARGUMENT if the list is empty
 * @example parametersToVector(new Linear(2, 3).parameters()).shape // [9]
 */
export function parametersToVector(parameters: Iterable<Tensor>): Tensor {
  checkIterable('parametersToVector', 'parameters', parameters)
  const parts = Array.from(parameters, (p) => p.reshape([p.numel]))
  if (parts.length === 0) throw invalidArgument('parametersToVector', 'at least one parameter', 'none', 'Pass module.parameters().')
  return cat(parts)
}

/**
 * Copies the elements of `vector` [n] into the parameters, in place and unrecorded, all or none. PyTorch makes the parameters views of the vector instead, and
 * ignores extra elements. PyTorch: `torch.nn.utils.vector_to_parameters`.
 * @throws SHAPE_MISMATCH if n is not the number of elements of all parameters
 * @example
 * const model = new Linear(2, 1)
 * vectorToParameters(tensor([1, 2, 3]), model.parameters())
 * model.weight // [[1, 2]]
 * model.bias! // [3]
 */
export function vectorToParameters(vector: Tensor, parameters: Iterable<Tensor>): void {
  checkTensor('vectorToParameters', 'the vector', vector)
  checkIterable('vectorToParameters', 'parameters', parameters)
  const all = [...parameters]
  const total = all.reduce((sum, p) => sum + p.numel, 0)
  if (vector.ndim !== 1 || vector.numel !== total) {
    throw shapeMismatch('vectorToParameters', `a vector [${total}]`, shapeText(vector.shape), 'Pass what parametersToVector() gave.')
  }
  let at = 0
  for (const p of all) {
    raw.copy_(p, raw.reshape(raw.narrow(vector, 0, at, p.numel), p.shape))
    at += p.numel
  }
}
