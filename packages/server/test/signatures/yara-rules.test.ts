import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Compiler, initSync, type Rules } from '@virustotal/yara-x'
import { macroFile, zip } from './archives.ts'
import { attackSamples } from './attack-samples.ts'
import { needsClamscan, scanFiles, signaturesDir } from './clamscan.ts'
import { nearMisses } from './near-misses.ts'

const sources = readdirSync(signaturesDir)
  .filter((name) => name.endsWith('.yar'))
  .map((name) => readFileSync(join(signaturesDir, name), 'utf8'))
const ruleNames = sources.flatMap((source) => [...source.matchAll(/^rule (\w+)/gm)].map(([, name = '']) => name))

let complaints: { errors: string[]; warnings: string[] }
let rules: Rules

before(() => {
  initSync({
    module: readFileSync(fileURLToPath(import.meta.resolve('@virustotal/yara-x')).replace(/\.js$/, '_bg.wasm')),
  })
  const compiler = new Compiler()
  for (const source of sources) compiler.addSource(source)
  complaints = { errors: compiler.errors, warnings: compiler.warnings }
  rules = compiler.build()
})

const findWithYaraX = (content: string | Uint8Array): string[] => {
  const result: { matches: { identifier: string }[] } = rules.scan(Buffer.from(content))
  return result.matches.map(({ identifier }) => identifier)
}

test('YARA-X accepts the rules, and no set of strings includes one too many', needsClamscan, () => {
  assert.deepEqual(complaints.errors, [])
  // `any of ($p*)` would include `$page`, and every PHP file would be a web shell.
  assert.deepEqual(
    complaints.warnings.filter((warning) => !warning.includes('text_as_hex')),
    [],
  )
})

test('every rule has a unique name with our prefix, a description and a sample', needsClamscan, () => {
  assert.deepEqual([...ruleNames].sort(), Object.keys(attackSamples).sort())
  for (const source of sources)
    for (const rule of source.split(/^(?=rule )/m).slice(1))
      assert.match(
        rule,
        /^rule Assay_\w+ \{\n {2}meta:\n {4}description = ".{20,}"\n {4}author = "Assay"\n {4}date = "\d{4}-\d\d-\d\d"\n/,
      )
})

test('every rule finds its samples in YARA-X, and ClamAV reports each of them', needsClamscan, () => {
  const samples = Object.entries(attackSamples).flatMap(([rule, contents]) =>
    contents.map((content, index) => ({ rule, content, file: `${rule}-${index}` })),
  )
  // Rules overlap, and ClamAV names only the first that matches.
  const found = scanFiles(Object.fromEntries(samples.map(({ file, content }) => [file, content])))
  for (const { file, rule, content } of samples) {
    assert.match(found[file] ?? 'nothing', /^YARA\.Assay_/, file)
    const matches = findWithYaraX(content)
    assert.ok(matches.includes(rule), `${file}: ${matches}`)
  }
})

test('harmless files that share words with the samples are clean, in ClamAV and in YARA-X', needsClamscan, () => {
  const clean = Object.fromEntries(Object.keys(nearMisses).map((file) => [file, null]))
  assert.deepEqual(scanFiles(nearMisses), clean)
  const hits = Object.entries(nearMisses).filter(([, content]) => findWithYaraX(content).length > 0)
  assert.deepEqual(
    hits.map(([file]) => file),
    [],
  )
})

test('a macro is found inside the Office file that carries it, where it is compressed', needsClamscan, () => {
  for (const rule of ruleNames.filter((name) => name.startsWith('Assay_Macro_'))) {
    const document = macroFile(String(attackSamples[rule]?.[0]))
    const types = { name: '[Content_Types].xml', data: '<?xml version="1.0"?><Types/>' }
    const found = scanFiles({
      'a.doc': document,
      'a.docm': zip([types, { name: 'word/vbaProject.bin', data: document }]),
    })
    for (const finding of Object.values(found)) assert.match(finding ?? 'nothing', /^YARA\.Assay_Macro_/)
  }
  const harmless = String(nearMisses['report.bas'])
  assert.deepEqual(scanFiles({ 'a.doc': macroFile(harmless) }), { 'a.doc': null })
})
