import { binHexChar } from '../../../domain/content/binhex-text.ts'
import { byteEscape } from './readers/hex-runs.ts'

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
  `[\\n\\r][ \\t]{0,16}:${binHexChar}{32}`,
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
const marks = new RegExp(searched.join('|'), 'i')
/** Bytes that a string writes as escapes. */
const escapes = new RegExp(`(?:${byteEscape}){8}`, 'i')

/**
 * Whether content is text in which no reader finds other content, but for the data that `newEncodedSearch` finds. Assay's
 * signatures for ClamAV (assay.ldb) mark the same texts, but ClamAV does not tell in which member of an archive.
 */
export function isPlainText(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  return !controls.test(text) && !marks.test(text) && !escapes.test(text)
}
