/** The text to learn, by characters. Replace it by your own, such as `readFileSync('my.txt', 'utf8')`. */
const TEXT = `The north wind and the sun disputed which was the stronger, when a traveller came along wrapped in a warm cloak.
They agreed that the one who first made the traveller take his cloak off should be considered stronger than the other.
Then the north wind blew as hard as he could, but the more he blew the more closely did the traveller fold his cloak around him.
And at last the north wind gave up the attempt. Then the sun shone out warmly, and at once the traveller took off his cloak.
And so the north wind was obliged to confess that the sun was the stronger of the two.
`

export const ALPHABET = [...new Set(TEXT)].sort()

export const encode = (text: string): number[] => Array.from(text, (character) => ALPHABET.indexOf(character))
export const decode = (symbols: readonly number[]): string => symbols.map((symbol) => ALPHABET[symbol]).join('')
export const SYMBOLS = encode(TEXT)
