import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type SettingDefinition, settingDefinitions } from '../../src/config/settings.ts'

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
  assert.deepEqual(written, Object.values(settingDefinitions).map(toRow))
})

const toRow = ({ env, fallback, about, secret }: SettingDefinition<unknown>) => [
  env,
  fallback === undefined ? 'not set' : fallback === '' ? 'empty' : fallback,
  secret === true ? `${about} (secret)` : about,
]
