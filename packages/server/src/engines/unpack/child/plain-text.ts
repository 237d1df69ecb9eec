/** Bytes that text does not have. Signatures of binary containers have at least one of them. */
const controls = /[\0-\x08\x0b\x0e-\x1f]/

/** Texts in which a container may begin, or by which a script writes a file. */
const searched = [
  'BZh[1-9]1AY&SY',
  'ustar[ 0]',
  '!<arch>',
  'SIT![^]{6}rLau',
  'FAT[0-9]{2} {3}',
  '\\x28\\xb5\\x2f\\xfd',
  '\\xef\\xbe\\xad\\xdeNullsoftInst',
  '%PDF-',
  'BinHex',
  '[\\n\\r][ \\t]{0,16}:[!-,\\-0-689@A-NP-VX-Z[`a-fh-mp-r]{32}',
  'content-transfer-encoding:',
  'content-type: multipart/',
  'begin-(?:base64|encoded)',
  '[\\n\\r]begin ',
  '=ybegin ',
  '-----BEGIN ',
  'manifest:encryption-data',
  'uudecode',
  'SHAR_E',
  's/\\^X//',
  '(?:cat|tee|sed|awk|cut|xxd)[^]{0,80}<<',
  '^#![^]*<<',
  'tail[^]{0,80}\\$0',
  '(?:sed|awk|dd) [^]{0,80}"\\$0"',
  'Makeself',
  '__HALT_COMPILER\\(\\);',
]
/** Words of base64, which count together with at least 32 of its characters in a row. */
const base64Words = [
  'base64',
  'atob\\(',
  'b64_?decode',
  'unpack\\(["\']m',
  'a2b_base',
  'certutil',
  '-encodedcommand',
  'openssl enc',
  'binary-?data',
  'binData',
]
/** The starts of encoded files, which need no word. */
const base64Starts = [
  'UEsDB',
  'TVqQ',
  'TVpQ',
  'H4sIA',
  'N3q8rycc',
  'UmFyIRo',
  '0M8R4KGx',
  'JVBERi0',
  'e1xydG',
  'WDVPIVAl',
  'QlpoO',
  '/Td6WF',
  'KLUv/',
  'f0VMRg',
  'IyEvYmlu',
  'IyEvdXNy',
  'PD9waH',
]
const marks = new RegExp(searched.join('|'), 'i')
const words = new RegExp(base64Words.join('|'), 'i')
const starts = new RegExp(base64Starts.join('|'))
/** Words of hexadecimal digits and the starts of encoded files, which count together with a long run or a dump. */
const hexWords = [
  'xxd',
  'hexlify',
  'from_?hex',
  'hex2bin',
  'hex_?decode',
  'pack\\(["\']H',
  '["\']hex["\']',
  '4d5a',
  '504b0304',
  '58354f21',
]
const digitWords = new RegExp(hexWords.join('|'), 'i')
const digits = /(?:[0-9a-f]{2}\s?){65}|[0-9a-f]{4,16}:[ \t]*[0-9a-f]{2,8}[ \t][0-9a-f]{2}/i
const escapes = /(?:\\(?:x[0-9a-f]{2}|u00[0-9a-f]{2}|0?[0-3][0-7]{2})){8}/i
const run = /[A-Za-z0-9+/_\-\\]{32}/

/**
 * Whether content is text in which no reader finds other content. Assay's signatures for ClamAV (assay.ldb) mark the
 * same texts, but ClamAV does not tell in which member of an archive.
 */
export function isPlainText(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  if (controls.test(text) || marks.test(text) || (hasBase64(text) && run.test(text))) return false
  return !(digitWords.test(text) && digits.test(text)) && !escapes.test(text)
}

const hasBase64 = (text: string) => words.test(text) || starts.test(text)
