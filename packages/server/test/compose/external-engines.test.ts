import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkExternal, noExternal, openExternal } from '../../src/compose/external-engines.ts'
import { ConfigMistakes, loadConfig } from '../../src/config/load-config.ts'
import { silentLog } from '../support/silent-log.ts'

function load(toml: string) {
  const dir = mkdtempSync(join(tmpdir(), 'assay-toml-'))
  try {
    const path = join(dir, 'assay.toml')
    writeFileSync(path, toml)
    return loadConfig({}, path).config
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const deps = { log: silentLog, clock: { now: () => new Date(0) }, findAccountPolicy: async () => null }

test('without engines and without a quorum nothing is opened, and no code of theirs is loaded', async () => {
  assert.equal(await openExternal(load(''), deps), noExternal)
  const script = `
    import { openExternal } from '${new URL('../../src/compose/external-engines.ts', import.meta.url).href}'
    import { registerHooks } from 'node:module'
    registerHooks({
      load(url, context, next) {
        if (url.includes('engines/external')) throw new Error('loaded ' + url)
        return next(url, context)
      },
    })
    const open = (engines, verdictPolicy) => openExternal({ engines, verdictPolicy }, {}).then(() => 'not loaded', (error) => error.message)
    console.log(await open([], 'any'))
    console.log(await open([{ origin: '', values: {} }], 'any'))
  `
  const out = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  const [without, withEngine] = out.trim().split('\n')
  assert.equal(without, 'not loaded')
  assert.match(withEngine ?? '', /^loaded .*external-engine\.ts/)
})

test('mistakes in tables are reported together, with the line of the table', async () => {
  const config = load('port = 0\n\n[[engines]]\nname = "one"\nkind = "soap"\n\n[[ engines ]]\nname = "two"\n')
  await assert.rejects(checkExternal(config), (error) => {
    assert.ok(error instanceof ConfigMistakes)
    const [first = '', second = ''] = error.mistakes
    assert.match(first, /assay\.toml line 3: engine "one": kind must be one of/)
    assert.match(second, /assay\.toml line 7: engine "two": kind is missing/)
    return true
  })
})

test('a quorum that all engines together cannot reach is a mistake', async () => {
  await assert.rejects(checkExternal(load('verdict_policy = "quorum 3"')), /needs 3 votes, but all engines .* have 2/)
  await checkExternal(load('verdict_policy = "quorum 2"'))
  const heavy = '[[engines]]\nname = "ClamAV"\nkind = "builtin"\nweight = 2\n'
  await checkExternal(load(`verdict_policy = "quorum 3"\n${heavy}`))
})

test('the policy of an account holds before that of the installation, and versions cover the configuration', async () => {
  const findAccountPolicy = async (id: string) => (id === 'own' ? 'quorum 2' : id === 'wrong' ? 'all' : null)
  const open = async (toml: string) => (await openExternal(load(toml), { ...deps, findAccountPolicy })).voting
  const table = '[[engines]]\nname = "ClamAV"\nkind = "builtin"\nheuristic_weight = 0.5\n'
  const voting = await open(table)
  const read = async (id: string | null) => (await voting?.findPolicy(id))?.text
  assert.deepEqual(
    [await read(null), await read('other'), await read('own'), await read('wrong')],
    ['any', 'any', 'quorum 2', 'any'],
  )
  const other = await open(table.replace('0.5', '0.6'))
  assert.notEqual((await voting?.findPolicy(null))?.version, (await other?.findPolicy(null))?.version)
  assert.deepEqual([voting?.findRule('ClamAV').heuristicWeight, voting?.findRule('YARA').heuristicWeight], [0.5, 1])
})

test('the version of the policy covers the policy of the installation and all tables', async () => {
  const open = async (toml: string) => (await openExternal(load(toml), deps)).policyVersion
  const table = '[[engines]]\nname = "ClamAV"\nkind = "builtin"\nweight = 2\n'
  const texts = ['', table, table.replace('2', '3'), `verdict_policy = "quorum 2"\n${table}`]
  assert.equal(new Set(await Promise.all(texts.map(open))).size, texts.length)
})

test('tables that are not tables are a mistake of the file', () => {
  assert.throws(() => load('engines = "clamd"'), /engines must be tables: write \[\[engines\]\] on a line/)
})
