import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const repository = fileURLToPath(new URL('../../../../', import.meta.url))

/** Messages of Node, npm packages and PostgreSQL. */
const foreign = ['connect ECONNREFUSED', 'password authentication failed for user', 'Unknown file extension ".ts"']

/** `...`, and N or M for a number, stand for the variable parts of a message. */
const toFixedParts = (message: string) =>
  message
    .split(/\.\.\.|\b[NM]\b/)
    .map((part) => part.replaceAll(/[()]/g, '').trim())
    .filter((part) => part.length >= 5)

test('docs/troubleshooting.md quotes messages that the program prints', () => {
  const source = readSources(['packages/server/src', 'packages/contract/src'])
  const document = readFileSync(join(repository, 'docs/troubleshooting.md'), 'utf8')
  const quoted = [...document.matchAll(/^\| `([^`]+)`/gm)].map(([, message = '']) => message)
  const parts = quoted.filter((message) => !/^Error:\w+$/.test(message)).flatMap(toFixedParts)
  assert(parts.length > 20)
  assert.deepEqual(
    parts.filter((part) => !foreign.includes(part) && !source.includes(part)),
    [],
  )
})

test('log lines in documents have messages that the program logs', () => {
  const source = readSources(['packages/server/src'])
  const names = readdirSync(join(repository, 'docs')).filter((name) => name.endsWith('.md'))
  const logged = names.flatMap((name) =>
    [...readFileSync(join(repository, 'docs', name), 'utf8').matchAll(/^\{"level":.*?"msg":"([^"]+)"\}$/gms)].map(
      ([, message = '']) => message.replaceAll('\n', ' '),
    ),
  )
  assert(logged.length > 5)
  assert.deepEqual(
    logged.filter((message) => !hasMessage(source, message)),
    [],
  )
})

/** Messages with variable parts are compared by sentence: most of a message must be in the source as it is. */
const hasMessage = (source: string, message: string) =>
  source.includes(message) || message.split(/[.:;] /).some((part) => part.length > 20 && source.includes(part))

/** All source text, with strings that are split over several lines joined. */
function readSources(folders: string[]): string {
  const files = folders.flatMap((folder) =>
    readdirSync(join(repository, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(repository, folder, name), 'utf8')),
  )
  return files.join('\n').replaceAll(/['"`]\s*\+\s*['"`]/g, '')
}
