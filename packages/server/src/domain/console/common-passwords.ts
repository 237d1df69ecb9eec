/**
 * Words that common passwords consist of, compiled by hand. Longer passwords in lists of leaked ones are mostly such
 * words, repeated, joined, or with digits and signs around them.
 */
const commonWords =
  `password passwort passwd pass motdepasse contrasena senha qwerty qwertz azerty qwertyuiop asdfghjkl zxcvbnm asdf zxcv
  qazwsx qwer admin administrator root superuser operator user guest test tester testing demo default changeme change
  welcome letmein login signin secret iloveyou love lovely sunshine princess prince monkey dragon football baseball
  basketball soccer hockey superman batman spiderman starwars pokemon master shadow ashley michael jennifer jordan
  charlie daniel jessica nicole hunter ranger killer trustno one two three freedom whatever computer internet server
  samsung google facebook microsoft windows apple linux ubuntu docker assay malware virus scanner scan company office
  home house summer winter spring autumn january february march april may june july august september october november
  december monday tuesday wednesday thursday friday saturday sunday hello world hallo my is the i you me new old abc abcd
  abcdef abcdefg abcdefgh abcdefghijkl correcthorsebatterystaple temp temporary system manager service account private
  security secure access foobar foo bar baz lorem ipsum hunter flower cookie cheese chocolate banana orange purple yellow
  please enter open sesame opensesame god jesus angel babygirl baby girl boy family liverpool chelsea arsenal barcelona`
    .split(/\s+/)
    .sort((a, b) => b.length - a.length)

/** Rows of keyboards and sequences, of which parts are common as well. */
const sequences = ['qwertyuiop', 'asdfghjkl', 'zxcvbnm', '01234567890', 'abcdefghijklmnopqrstuvwxyz', 'qwertzuiop']
  .flatMap((row) => [row, row.split('').reverse().join('')])
  .map((row) => row + row)

const letterOf: Record<string, string> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
}

/**
 * True for passwords that guessers try first: few different characters, sequences of the keyboard, common words with
 * digits and signs, and the person's own name or address.
 */
export function isCommonPassword(password: string, person: { email: string; name?: string }): boolean {
  const plain = password.toLowerCase()
  if (new Set(plain).size < 5) return true
  if (isRepeated(plain)) return true
  const own = [person.email, person.email.split('@')[0] ?? '', person.name ?? ''].flatMap((text) => {
    const lower = text.toLowerCase()
    return [lower, ...lower.split(/[^\p{L}\p{N}]+/u)]
  })
  const words = [...commonWords, ...own.filter((word) => word.length >= 3)]
  return countBeyond(plain, words) < 4
}

/** True for a text that repeats a part of at most four characters. */
const isRepeated = (text: string) => /^(.{1,4})\1+.{0,3}$/s.test(text)

/**
 * Counts the letters and digits beyond common words and sequences. Words are also found where digits and signs stand for
 * letters. Four digits are a year or a date, and add nothing.
 */
function countBeyond(text: string, words: string[]): number {
  const chars = text.split('')
  const isKnown = chars.map(() => false)
  const asLetters = chars.map((char) => letterOf[char] ?? char).join('')
  for (const word of words) {
    if (word.length < 3) continue
    for (const form of [text, asLetters]) {
      for (let at = form.indexOf(word); at !== -1; at = form.indexOf(word, at + 1)) {
        isKnown.fill(true, at, at + word.length)
      }
    }
  }
  for (let at = 0; at < chars.length; at++) {
    const length = countSequence(text, at)
    if (length >= 3) isKnown.fill(true, at, at + length)
  }
  const rest = chars.filter((_, at) => isKnown[at] === false).join('')
  const letters = rest.replaceAll(/[^\p{L}]/gu, '').length
  const digits = rest.replaceAll(/\D/g, '').length
  return letters + Math.max(0, digits - 4)
}

/** How many characters from here on follow each other on a keyboard, in the alphabet or in counting. */
function countSequence(text: string, at: number): number {
  let length = 0
  while (at + length < text.length && sequences.some((row) => row.includes(text.slice(at, at + length + 1)))) length++
  return length
}
