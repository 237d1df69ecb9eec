import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { containerFormatNames } from '../../src/domain/content/container-formats.ts'
import { maxUnpackedBytes } from '../../src/domain/ports/engines.ts'
import { readers } from '../../src/engines/unpack/child/read-content.ts'

const repository = fileURLToPath(new URL('../../../../', import.meta.url))
const readText = (path: string) => readFileSync(join(repository, path), 'utf8')
const [, section = ''] = /^## Containers and readings\n([\s\S]*?)^## /m.exec(readText('docs/verdicts.md')) ?? []
const rows = section
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) => line.split('|').slice(1, -1))
const families = rows.filter((cells) => cells.length === 5)
const limits = new Map(
  rows.filter((cells) => cells.length === 3).map(([name = '', value = '']) => [name.trim(), value.trim()]),
)

const listQuoted = (column: number) =>
  families.flatMap((cells) => [...(cells[column] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))

test('the table of families has every reader once', () => {
  assert.deepEqual(listQuoted(1).toSorted(), readers.map((reader) => reader.name).toSorted())
})

test('the table of families has every container format once', () => {
  assert.deepEqual(listQuoted(2).toSorted(), containerFormatNames.toSorted())
})

test('the limits are those of the code', () => {
  const read = (path: string, name: string) => {
    const [, value = ''] = new RegExp(`const ${name} = ([\\d_]+)\n`).exec(readText(`packages/server/src/${path}`)) ?? []
    return Number(value.replaceAll('_', ''))
  }
  const wanted = {
    'Unpacked bytes': `${maxUnpackedBytes / 2 ** 20} MB`,
    Members: read('domain/scans/inspection.ts', 'maxMembers').toLocaleString('en'),
    Levels: String(read('domain/scans/inspection.ts', 'maxDepth')),
    'Processor time of the engines': `${read('domain/scans/work-clock.ts', 'maxWorkMs') / 1000} s`,
    'Elapsed time': `${read('domain/scans/work-clock.ts', 'maxElapsedMs') / 1000} s`,
  }
  for (const [name, value] of Object.entries(wanted)) assert.equal(limits.get(name), value, name)
})
