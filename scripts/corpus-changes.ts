import { randomInt } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forms, listLacking, makePairs, type Pair } from '../acceptance/corpus/corpus.ts'
import { listExtracting } from '../acceptance/corpus/extract.ts'
import { installAllTools } from '../acceptance/corpus/tools.ts'
import { toVerdict, uploadTo } from '../acceptance/support/scanning.ts'
import { openCorpusService } from './corpus-service.ts'

/**
 * Changes samples of the corpus at random, and prints those that are called clean although a program extracts EICAR from
 * them: content that programs read in another way than Assay does. Each is kept in a file.
 *
 * `npm run corpus:changes -- 300 tar zip` takes 300 seconds, and forms whose name or family contains one of the words.
 * Ends with 1 when there is such a sample. A finding may be a damage that no one else repairs: look at it by hand.
 */
const [secondsText = '60', ...words] = process.argv.slice(2)
const samplesOfForm = 4
const maxSampleBytes = 300_000
const workers = 4

installAllTools()
const pairs = forms
  .filter((form) => listLacking(form).length === 0)
  .filter(({ name, family }) => words.length === 0 || words.some((word) => `${family} ${name}`.includes(word)))
  .flatMap((form) => makePairs(form, samplesOfForm))
  .filter(({ bytes }) => bytes.length <= maxSampleBytes)
const { url, key, stop } = await openCorpusService()
const directory = mkdtempSync(join(tmpdir(), 'assay-corpus-changes-'))
const end = Date.now() + Number(secondsText) * 1000
const counts: Record<string, number> = {}
let found = 0
try {
  await Promise.all(Array.from({ length: workers }, scanUntilEnd))
} finally {
  await stop()
}
process.stdout.write(`${JSON.stringify(counts)}; ${found} clean though a program extracts EICAR\n`)
process.exit(found > 0 ? 1 : 0)

async function scanUntilEnd() {
  while (Date.now() < end) {
    const pair = pairs[randomInt(pairs.length)] as Pair
    const bytes = change(pair)
    const answer = await uploadTo(url, key, bytes, pair.name)
    if (answer.status === 503) continue
    const { status } = toVerdict(answer, `${pair.form.name} ${pair.name}`)
    counts[status] = (counts[status] ?? 0) + 1
    if (status !== 'clean') continue
    const options = { special: pair.form.extractors, isExact: true }
    const programs = await listExtracting({ name: pair.name, bytes }, pair.payload, options)
    if (programs.length === 0) continue
    const file = join(directory, `${++found}-${pair.name.replaceAll('/', '_')}`)
    writeFileSync(file, bytes)
    process.stdout.write(`${pair.form.family}: ${pair.form.name}: ${programs.join(', ')}: ${file}\n`)
  }
}

/** Replaces, inserts, removes or repeats bytes, more often near the ends, where headers and directories are. */
function change({ bytes, payload }: Pair): Buffer {
  const choice = randomInt(6)
  const at = randomInt(randomInt(2) === 0 ? Math.min(600, bytes.length) : bytes.length)
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)]
  if (choice === 0) return Buffer.concat([before, newBytes(1 + randomInt(12)), after])
  if (choice === 1) return Buffer.concat([before, after.subarray(1 + randomInt(8))])
  if (choice === 2) return Buffer.concat([before, after.subarray(0, 1 + randomInt(200)), after])
  const changed = Buffer.from(bytes)
  const payloadAt = bytes.indexOf(payload.subarray(0, 20))
  for (let count = randomInt(3); count >= 0; count--) {
    const place = randomInt(3) === 0 ? bytes.length - 1 - randomInt(Math.min(300, bytes.length)) : at + count
    const isPayload = payloadAt !== -1 && place >= payloadAt && place < payloadAt + payload.length
    if (!isPayload && place < bytes.length) changed[place] = newBytes(1)[0] as number
  }
  return changed
}

/** Bytes that mean something in many formats, or any. */
function newBytes(count: number): Buffer {
  const usual = [0, 1, 0x0a, 0x0d, 0x20, 0x30, 0xff]
  return Buffer.from(Array.from({ length: count }, () => usual[randomInt(2 * usual.length)] ?? randomInt(256)))
}
