import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Knob } from '../../src/config/knob.ts'
import { knobs } from '../../src/config/knobs.ts'

test('the settings in docs/settings.md are the settings there are', () => {
  const document = readFileSync(new URL('../../../../docs/settings.md', import.meta.url), 'utf8')
  const table = /<!-- settings -->\n(.*)<!-- \/settings -->/s.exec(document)?.[1] ?? ''
  const [, , ...rows] = table.trim().split('\n')
  const written = rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
  assert.deepEqual(written, Object.values(knobs).map(toRow))
})

const toRow = ({ env, fallback, about, secret }: Knob<unknown>) => [
  env,
  fallback === undefined ? 'not set' : fallback === '' ? 'empty' : fallback,
  secret === true ? `${about} (secret)` : about,
]
