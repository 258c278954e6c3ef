/**
 * Writes packages/nn/golden/postgrad.safetensors, a model's weights as postgrad saves them, and weights-here.json, its input and output. Then let
 * PyTorch read it: python3 scripts/golden/weights.py --check
 *   node scripts/golden/weights.mjs
 */
import { writeFileSync } from 'node:fs'
import { goldenFile, writtenHere } from '../../packages/nn/dist/safetensors/model.suite.js'

const { bytes, expected } = await writtenHere()
writeFileSync(goldenFile('postgrad.safetensors'), bytes)
writeFileSync(goldenFile('weights-here.json'), `${JSON.stringify(expected)}\n`)
console.log(`${bytes.length} bytes -> ${goldenFile('postgrad.safetensors').pathname}`)
