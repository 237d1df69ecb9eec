import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { needsClamscan, scanFiles } from './clamscan.ts'

interface LookAlike {
  name: string
  class: string
  text: string
}

const dir = fileURLToPath(new URL('./look-alikes/', import.meta.url))

/** The entries of all files whose name begins with the prefix, by a file name of their own. */
function readEntries(prefix: string): { file: string; className: string; content: Uint8Array }[] {
  const names = readdirSync(dir).filter((name) => name.startsWith(prefix) && name.endsWith('.json'))
  return names.sort().flatMap((name) => {
    const entries: LookAlike[] = JSON.parse(readFileSync(join(dir, name), 'utf8'))
    return entries.map((entry, index) => ({
      file: `${entry.class}-${index}-${entry.name.replaceAll(/[^\w.-]/g, '_')}`,
      className: entry.class,
      content: Buffer.from(entry.text, 'base64'),
    }))
  })
}

const scanEntries = (entries: ReturnType<typeof readEntries>) =>
  scanFiles(Object.fromEntries(entries.map(({ file, content }) => [file, content])))

// Messages name classes and counts, not entries: whoever writes rules must not learn which texts are missed.
test('at least 80 % of the look-alikes that others wrote are found', needsClamscan, (t) => {
  const entries = readEntries('malicious-')
  const found = scanEntries(entries)
  const isFound = ({ file }: { file: string }) => found[file] !== null
  for (const [className, members = []] of Object.entries(Object.groupBy(entries, (entry) => entry.className)))
    t.diagnostic(`${className}: ${members.filter(isFound).length} of ${members.length} found`)
  const foundCount = entries.filter(isFound).length
  assert.ok(entries.length >= 60, `only ${entries.length} look-alikes`)
  assert.ok(foundCount >= entries.length * 0.8, `${foundCount} of ${entries.length} look-alikes found`)
})

test('no harmless file from the neighbourhood of the look-alikes is reported', needsClamscan, () => {
  const entries = readEntries('harmless-')
  assert.ok(entries.length >= 60, `only ${entries.length} harmless files`)
  const reported = Object.entries(scanEntries(entries)).filter(([, finding]) => finding !== null)
  assert.deepEqual(reported, [])
})
