import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { readCodeBlocks } from '../../../../acceptance/support/code-blocks.ts'
import { makeProgram } from '../../src/commands/program.ts'
import { settingDefinitions } from '../../src/config/settings.ts'

const repository = fileURLToPath(new URL('../../../../', import.meta.url))
const read = (path: string) => readFileSync(join(repository, path), 'utf8')
/** Decisions and the list of changes tell what was so at their time. */
const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(join(repository, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name}`)
    .filter((path) => path.endsWith('.md') && !path.startsWith('docs/decisions/')),
]
const find = (pattern: RegExp) =>
  documents.flatMap((document) =>
    [
      ...read(document)
        .replaceAll(/\\\n\s*/g, '')
        .matchAll(pattern),
    ].map(([, name = '']) => ({ document, name })),
  )

test('every operator command that a document names is there, with its options', async () => {
  const program = await makeProgram()
  const groups = program.commands.filter(({ commands }) => commands.length > 0).map((command) => command.name())
  const typed = find(/npm run (?:--silent )?assay -- ([^`\n|]+)/g)
  const mentioned = find(
    new RegExp(`\`(?:assay )?(?!signatures could )((?:${groups.join('|')}) [a-z][^\`\\n]*)\``, 'g'),
  )
  assert(typed.length > 50 && mentioned.length > 20)
  const faults = [...typed, ...mentioned].flatMap(({ document, name }) =>
    findFault(program, name) ? [`${document}: ${name}`] : [],
  )
  assert.deepEqual(faults, [])
})

test('the program loads only the command that its arguments begin with', async () => {
  const names = (await makeProgram()).commands.map((command) => command.name())
  for (const name of names) {
    const { commands } = await makeProgram([name, '--help'])
    assert.deepEqual(
      commands.map((command) => command.name()),
      [name],
    )
  }
  for (const args of [['--help'], ['help', 'keys'], ['acounts'], ['constructor']])
    assert.equal((await makeProgram(args)).commands.length, names.length)
})

test('every setting that a document names is there', () => {
  const settings = Object.values(settingDefinitions).flatMap(({ env, secret }) =>
    secret === true ? [env, `${env}_FILE`] : [env],
  )
  // Of those who call, in their own samples; and a slip that a document shows.
  const others = ['ASSAY_URL', 'ASSAY_API_KEY', 'ASSAY_WEBHOOK_SECRET', 'ASSAY_CONFIG', 'ASSAY_REGOIN']
  const template = read('packaging/gitlab/assay-scan.gitlab-ci.yml')
  const variables = [...template.matchAll(/(?:^ {4}|\$\{)(ASSAY_[A-Z_]+):/gm)].map(([, name = '']) => name)
  assert(variables.includes('ASSAY_SCAN_PATH'))
  const known = new Set([...settings, ...others, ...variables])
  const named = find(/\b(ASSAY_[A-Z0-9_]*[A-Z0-9])\b(?!\*)/g)
  assert(named.length > 200)
  assert.deepEqual(
    named.filter(({ name }) => !known.has(name)),
    [],
  )
})

test('docs/settings.md names every secret that can be given as a file', () => {
  const settings = read('docs/settings.md')
  const missing = Object.values(settingDefinitions).filter(
    ({ env, secret }) => secret && !settings.includes(`\`${env}_FILE\``),
  )
  assert.deepEqual(
    missing.map(({ env }) => env),
    [],
  )
})

test('every script of npm, long test and benchmark that a document names is there', () => {
  const readScripts = (dir: string) => Object.keys(JSON.parse(read(join(dir, 'package.json'))).scripts ?? {})
  const scripts = ['', 'packages/client', 'packages/cli'].flatMap(readScripts)
  const benches = [...read('bench/src/run.ts').matchAll(/^ {2}'?([\w-]+)'?: bench/gm)].map(([, name]) => name)
  const isCase = (name: string) => existsSync(join(repository, 'soak/cases', `${name}.ts`))
  const cases = [
    ...find(/npm run soak -- ([\w-]+)/g),
    ...find(/^\|[^|]*\(`((?:database|disk|files|clock|dns|engine|cluster)-[\w-]+)`\)/gm),
  ]
  assert(cases.length >= 14 && benches.length > 10)
  assert.deepEqual(
    [
      ...find(/\bnpm run (?:--silent )?([\w:-]+)/g).filter(({ name }) => !scripts.includes(name)),
      ...find(/\bnpm run bench -- ([\w-]+)/g).filter(({ name }) => !benches.includes(name)),
      ...cases.filter(({ name }) => !isCase(name)),
    ],
    [],
  )
})

test('every file of the repository that a document names is there', () => {
  const named = find(/`((?:acceptance|bench|docs|packages|packaging|scripts|soak)\/[\w./-]*[\w])`/g)
  assert(named.length > 50)
  // What a build or the first start makes, and what stands for a number.
  const isMade = (name: string) => /\/(?:dist|built|NNNN)\b/.test(name)
  assert.deepEqual(
    named.filter(({ name }) => !isMade(name) && !existsSync(join(repository, name))),
    [],
  )
})

test('every block of JSON in a document can be read', () => {
  for (const document of documents) {
    for (const { language, text, line } of readCodeBlocks(document)) {
      if (language === 'json') assert.doesNotThrow(() => JSON.parse(text), `${document}:${line}`)
    }
  }
})

/** A name in angle brackets, or dots, stand for what the reader has to put there. */
function findFault(program: Command, typed: string): boolean {
  const [first = '', second = '', ...others] = typed.split(/\s+/)
  if (/^[<.]/.test(first)) return false
  const group = program.commands.find((command) => command.name() === first)
  const command = group?.commands.find((command) => command.name() === second)
  if (group === undefined || (group.commands.length > 0 && second !== '' && command === undefined)) return true
  const options = new Set([...(command ?? group).options, ...group.options].map(({ long }) => long))
  return [second, ...others].some(
    (word) => word.startsWith('--') && word !== '--help' && !options.has(word.split('=', 1)[0]),
  )
}
