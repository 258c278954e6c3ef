/**
 * Whether operations record a graph. The mode is a slot of the current scope, so it follows a program through its awaits and never leaks into a
 * call that interleaves. PyTorch: `torch.no_grad`, `torch.enable_grad`, `torch.is_grad_enabled`.
 */
import { currentScope, withScope } from '@postgrad/base/internal'
import { checkFunction } from '@postgrad/tensor/internal'

/**
 * Runs `fn` without recording, and returns its result; also if `fn` is async, to its end. PyTorch: `torch.no_grad`.
 * @example
 * const x = tensor([1, 2], { requiresGrad: true })
 * noGrad(() => x.mul(2)).requiresGrad // false
 */
export function noGrad<T>(fn: () => T): T {
  checkFunction('noGrad', 'the code that it is for', fn)
  return withScope({ gradEnabled: false }, fn)
}

/**
 * Runs `fn` with recording, also inside `noGrad`, and returns its result. PyTorch: `torch.enable_grad`.
 * @example
 * const x = tensor([1, 2], { requiresGrad: true })
 * noGrad(() => enableGrad(() => x.mul(2))).requiresGrad // true
 */
export function enableGrad<T>(fn: () => T): T {
  checkFunction('enableGrad', 'the code that it is for', fn)
  return withScope({ gradEnabled: true }, fn)
}

/**
 * Runs `fn` with recording on or off, and returns its result. PyTorch: `torch.set_grad_enabled`; there it can also be called without code to run.
 * @example
 * const x = tensor([1, 2], { requiresGrad: true })
 * setGradEnabled(false, () => x.mul(2)).requiresGrad // false
 */
export function setGradEnabled<T>(enabled: boolean, fn: () => T): T {
  checkFunction('setGradEnabled', 'the code that it is for', fn)
  return withScope({ gradEnabled: enabled }, fn)
}

/**
 * Whether the running code records operations. PyTorch: `torch.is_grad_enabled`.
 * @example [isGradEnabled(), noGrad(() => isGradEnabled())] // [true, false]
 */
export function isGradEnabled(): boolean {
  return currentScope().gradEnabled
}
