/**
 * Writes packages/nn/golden/postgrad.safetensors, a model's weights as postgrad saves them, postgrad-adam.safetensors, an optimizer's state, and
 * weights-here.json: the model's input and output, and how training continued. Then let PyTorch read them:
 *   python3 scripts/golden/weights.py --check
 * Run it by: node scripts/golden/weights.mjs
 */
import { writeFileSync } from 'node:fs'
import { goldenFile, writtenHere } from '../../packages/nn/dist/safetensors/model.suite.js'

const { bytes, adam, expected } = await writtenHere()
writeFileSync(goldenFile('postgrad.safetensors'), bytes)
writeFileSync(goldenFile('postgrad-adam.safetensors'), adam)
writeFileSync(goldenFile('weights-here.json'), `${JSON.stringify(expected)}\n`)
console.log(`${bytes.length} bytes -> ${goldenFile('postgrad.safetensors').pathname}`)
