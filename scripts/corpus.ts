import { forms, listLacking, makePairs, type Pair } from '../acceptance/corpus/corpus.ts'
import { listExtracting } from '../acceptance/corpus/extract.ts'
import { mapParallel, type Scanned, scanPairs } from '../acceptance/corpus/scan-pairs.ts'
import { installAllTools } from '../acceptance/corpus/tools.ts'
import { openCorpusService } from './corpus-service.ts'

/**
 * Scans the corpus of hidden content and prints for each form its samples, the programs that extract them, the verdicts
 * and the wrong ones. Uses the service at ASSAY_URL with the key ASSAY_API_KEY, or starts one.
 *
 * `npm run corpus` takes all forms, `npm run corpus -- zip tar` those whose name or family contains one of the words.
 * `--quick` extracts only samples that were called clean. Ends with 1 when a verdict is wrong.
 */
const args = process.argv.slice(2)
const words = args.filter((arg) => !arg.startsWith('--'))
const isQuick = args.includes('--quick')

/** `extractedBy` is undefined where extraction was not tried. */
type Row = Scanned & { extractedBy: string[] | undefined }

installAllTools()
const { url, key, stop } = await openCorpusService()
const print = (text: string) => process.stdout.write(`${text}\n`)
const rows: Row[] = []
const chosen = forms.filter(
  ({ name, family }) => words.length === 0 || words.some((word) => name.includes(word) || family.includes(word)),
)
try {
  for (const form of chosen) {
    const lacking = listLacking(form)
    if (lacking.length > 0) {
      print(`${form.family}: ${form.name}: skipped without ${lacking.join(', ')}`)
      continue
    }
    const pairs = makePairs(form)
    const scanned = await scanPairs(url, key, pairs)
    const isExtracted = ({ verdict }: Scanned) => !isQuick || verdict.status === 'clean'
    const extracting = await mapParallel(scanned, 2, async (row) => (isExtracted(row) ? extract(row) : undefined))
    const rowsOfForm = scanned.map((row, n) => ({ ...row, extractedBy: extracting[n] }))
    printForm(rowsOfForm)
    rows.push(...rowsOfForm)
  }
} finally {
  await stop()
}
printSums()
process.exit(rows.some(({ faults }) => faults.length > 0) ? 1 : 0)

function extract({ form, name, bytes, payload }: Pair): Promise<string[]> {
  return listExtracting({ name, bytes }, payload, { special: form.extractors })
}

function printForm(rowsOfForm: Row[]) {
  const [first] = rowsOfForm
  if (first === undefined) return
  const tools = [...new Set(rowsOfForm.flatMap(({ extractedBy }) => extractedBy ?? []))]
  const { family, name, expectation } = first.form
  print(`${family}: ${name} (${expectation}): ${rowsOfForm.length} samples`)
  if (!isQuick || tools.length > 0) print(`  extracted by ${tools.join(', ') || 'none'}`)
  print(`  with EICAR ${count(rowsOfForm.map(({ verdict }) => verdict.status))}`)
  print(`  with a harmless text ${count(rowsOfForm.map(({ twinVerdict }) => twinVerdict.status))}`)
  for (const row of rowsOfForm) {
    if (row.faults.length > 0) print(`  wrong: ${row.name}: ${row.faults.join('; ')} (${toExtracted(row)})`)
    else if (row.expectation === 'opened' && row.extractedBy?.length === 0) print(`  not extracted: ${row.name}`)
  }
}

function toExtracted({ extractedBy }: Row): string {
  if (extractedBy === undefined) return 'extraction was not tried'
  return extractedBy.length === 0 ? 'no program extracts it' : `extracted by ${extractedBy.join(', ')}`
}

function count(statuses: string[]): string {
  const counts = Object.groupBy(statuses, (status) => status)
  return Object.entries(counts)
    .map(([status, list = []]) => `${list.length} ${status}`)
    .join(', ')
}

function printSums() {
  const isClean = ({ verdict }: Row) => verdict.status === 'clean'
  const formCount = new Set(rows.map(({ form }) => form.name)).size
  print('')
  print(`${formCount} forms, ${rows.length} samples, as many with a harmless text`)
  print(`clean with EICAR: ${rows.filter(isClean).length}`)
  print(
    `clean though a program extracts EICAR: ${rows.filter((row) => isClean(row) && (row.extractedBy?.length ?? 0) > 0).length}`,
  )
  print(`wrong: ${rows.filter(({ faults }) => faults.length > 0).length}`)
}
