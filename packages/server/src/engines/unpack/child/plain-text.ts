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
  'content-transfer-encoding:',
  'content-type: multipart/',
  'begin-base64 ',
  '[\\n\\r]begin [0-7]{3} ',
  '=ybegin line=',
  '-----BEGIN ',
  'manifest:encryption-data',
  'uudecode',
  'SHAR_E',
  's/\\^X//',
  'cat[^]{0,80}<<',
  'tee [^]{0,80}<<',
  'tail[^]{0,80}\\$0',
  '(?:sed|awk|dd) [^]{0,80}"\\$0"',
  'Makeself',
  '__HALT_COMPILER\\(\\);',
]
const marks = new RegExp(searched.join('|'), 'i')

/**
 * Whether content is text in which no reader finds other content. Assay's signatures for ClamAV (assay.ldb) mark the
 * same texts, but ClamAV does not tell in which member of an archive.
 */
export function isPlainText(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  return !controls.test(text) && !marks.test(text)
}
