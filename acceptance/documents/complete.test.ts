import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readCodeBlocks } from '../support/code-blocks.ts'
import { findUndeclared, toSteps } from '../support/document-commands.ts'
import { exceptions, findException } from '../support/document-exceptions.ts'
import { runners } from '../support/document-runners.ts'
import { alreadyTested } from '../support/scanning.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))
/** Decisions tell what was so when they were made. */
const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(join(repository, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name}`)
    .filter((path) => path.endsWith('.md') && !path.startsWith('docs/decisions/')),
]
const blocks = documents.flatMap((document) => readCodeBlocks(document).map((block) => ({ document, ...block })))

test('every command in the documents is typed by a test, or it is said why not', { skip: alreadyTested }, () => {
  const nobodys = blocks.flatMap((block) => {
    const { document, line } = block
    if (runners.some((runner) => runner.document === document && runner.takes(block))) return []
    const typed = toSteps(block).filter(({ command }) => findException(document, command) === undefined)
    return typed.map(({ command }) => `${document}:${line}: ${command}`)
  })
  assert.deepEqual(nobodys, [])
})

test('what is to be typed is in a block of sh, or stands behind a $', { skip: alreadyTested }, () => {
  const undeclared = blocks.flatMap((block) => {
    if (toSteps(block).length > 0) return []
    return findUndeclared(block).map((line) => `${block.document}:${block.line}: ${line}`)
  })
  assert.deepEqual(undeclared, [])
})

test('the tests that are to type commands ask which ones', { skip: alreadyTested }, () => {
  for (const { document, test, takes } of runners) {
    assert.match(readFileSync(join(repository, test), 'utf8'), /getTaker\(|followDocument\(/, test)
    assert(readCodeBlocks(document).some(takes), `${test} finds nothing to type in ${document}.`)
  }
})

test('every exception is of a command that is there', { skip: alreadyTested }, () => {
  for (const { documents, command } of exceptions) {
    for (const document of documents) {
      const typed = readCodeBlocks(document).flatMap((block) => toSteps(block).map(({ command }) => command))
      assert(
        typed.some((one) => one.startsWith(command)),
        `${document} has no ${command}`,
      )
    }
  }
})

test('the files of the repository that an exception names are there', { skip: alreadyTested }, () => {
  const kept = blocks.flatMap(({ document, ...block }) =>
    toSteps(block).filter(({ command }) => findException(document, command) !== undefined),
  )
  const named = [...kept.map(({ command }) => command), ...exceptions.map(({ instead }) => instead)].flatMap((text) => [
    ...text.matchAll(/(?<![\w/])(?:acceptance|packages|packaging|scripts)\/[\w./-]*\w/g),
  ])
  assert(named.length > 10)
  for (const [path] of named) assert(existsSync(join(repository, path)), path)
})
