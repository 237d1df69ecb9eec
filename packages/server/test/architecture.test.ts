import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkArchitecture, readSourceFiles, type SourceFile } from './support/architecture.ts'

test('the arrows between folders point one way', () => {
  assert.deepEqual(checkArchitecture(readSourceFiles()), [])
})

const imports = (path: string, ...targets: string[]): SourceFile => ({ path, lines: 10, imports: targets })

test('a forbidden import is found', () => {
  const found = checkArchitecture([
    imports('domain/scans/scan.ts', 'database/tables.ts'),
    imports('database/tables.ts'),
  ])
  assert.deepEqual(found, [
    'domain/scans/scan.ts imports database/tables.ts: domain may use only domain, @assay/contract',
  ])
})

test('a cycle is found', () => {
  const found = checkArchitecture([
    imports('domain/a.ts', 'domain/b.ts'),
    imports('domain/b.ts', 'domain/c.ts'),
    imports('domain/c.ts', 'domain/a.ts'),
  ])
  assert.deepEqual(found, ['cycle: domain/a.ts -> domain/b.ts -> domain/c.ts -> domain/a.ts'])
})

test('a file over 300 lines is found', () => {
  assert.deepEqual(checkArchitecture([{ path: 'domain/a.ts', lines: 301, imports: [] }]), ['domain/a.ts has 301 lines'])
})

test('SQL outside the database folder is found', () => {
  assert.deepEqual(checkArchitecture([imports('http/a.ts', 'pg')]), [
    'http/a.ts imports pg: only database speaks to PostgreSQL',
  ])
})
