/** Tensors that have come and are used no more: their blocks go back now, not when they are collected. */
import { giveBack, isTensor } from '@postgrad/tensor/internal'
import type { Values } from '../common/protocol.js'

export function dropValues(values: Values): void {
  for (const value of values) if (isTensor(value) && !value.isSparse) giveBack(value.storage)
}
