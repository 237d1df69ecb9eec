import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { checkWebAddress, makeAddressPolicy } from '../../src/domain/scans/web-address.ts'
import {
  findChecksum,
  findMinisignKey,
  findReservedMatch,
  findSignatureName,
  hasPublicRule,
  hasRule,
  hideRule,
  isSourceFile,
  isTooLong,
  presets,
  readMinisig,
  requireMinisign,
} from '../../src/domain/sources.ts'

const hasMinisign = spawnSync('minisign', ['-v']).status === 0

describe('rules of sources', () => {
  for (const form of ['prehashed', 'legacy'] as const) {
    test(`a signature of minisign is verified: ${form}`, { skip: !hasMinisign && 'minisign is not installed' }, (t) => {
      const dir = mkdtempSync(join(tmpdir(), 'assay-minisign-'))
      t.after(() => rmSync(dir, { recursive: true, force: true }))
      const content = Buffer.from('Feed.One:0:*:616263\n')
      writeFileSync(join(dir, 'feed.ndb'), content)
      const run = (...args: string[]) => execFileSync('minisign', args, { cwd: dir, stdio: 'pipe' })
      run('-G', '-W', '-p', 'key.pub', '-s', 'key')
      run('-S', ...(form === 'legacy' ? ['-l'] : []), '-s', 'key', '-m', 'feed.ndb', '-t', 'of the test')
      const key = findMinisignKey(readFileSync(join(dir, 'key.pub'), 'utf8').split('\n')[1] ?? '')
      assert.ok(key)
      const found = readMinisig(readFileSync(join(dir, 'feed.ndb.minisig'), 'utf8'))
      assert.deepEqual([found.isPrehashed, found.trustedComment], [form === 'prehashed', 'of the test'])
      const toSigned = (bytes: Buffer) => (found.isPrehashed ? createHash('blake2b512').update(bytes).digest() : bytes)
      requireMinisign(key, found, toSigned(content))
      assert.throws(() => requireMinisign(key, found, toSigned(Buffer.from('other'))), /does not belong/)
      const forged = { ...found, trustedComment: 'of another' }
      assert.throws(() => requireMinisign(key, forged, toSigned(content)), /does not belong/)
      assert.throws(() => requireMinisign({ ...key, id: '00' }, found, toSigned(content)), /another minisign key/)
    })
  }

  test('a checksum is found in every common form of list', () => {
    const hash = 'a'.repeat(64)
    const other = 'b'.repeat(64)
    for (const list of [
      hash.toUpperCase(),
      `# comment\n${other}  other.ndb\n${hash}  feed.ndb\n`,
      `${hash} *./dist/feed.ndb\r\n`,
      `SHA256 (feed.ndb) = ${hash}\n`,
    ]) {
      assert.equal(findChecksum(list, 'feed.ndb'), hash, list)
    }
    for (const list of ['', 'not a list', `${hash}  other.ndb`, `${hash}\n${hash}`, `${hash}  xfeed.ndb`]) {
      assert.throws(() => findChecksum(list, 'feed.ndb'), /does not name feed\.ndb/, list)
    }
    assert.throws(() => findChecksum(`${hash}  feed.ndb\n${other}  feed.ndb`, 'feed.ndb'), /several hashes/)
  })

  test('the name of a signature is found in each kind of line', () => {
    const lines: [file: string, line: string, name: string | undefined][] = [
      ['a.ndb', 'Name.A:0:*:6162', 'Name.A'],
      ['a.ldb', 'Name.B;Engine:51-255,Target:0;0;6162', 'Name.B'],
      ['a.hdb', `${'0'.repeat(32)}:12:Name.C`, 'Name.C'],
      ['a.hsb', `${'0'.repeat(64)}:*:Name.D:73`, 'Name.D'],
      ['a.mdb', `12:${'0'.repeat(32)}:Name.E`, 'Name.E'],
      ['a.cdb', 'Name.F:CL_TYPE_ZIP:*:x:*:*:*:*:*:*', 'Name.F'],
      ['a.ndb', '# comment', undefined],
      ['a.ndb', '', undefined],
    ]
    for (const [file, line, name] of lines) assert.equal(findSignatureName(file, line), name, line)
    for (const file of ['a.fp', 'a.sfp', 'a.ign2', 'main.cvd', 'a.txt', 'a.cbc', 'ndb']) assert.ok(!isSourceFile(file))
  })

  test('a reserved name is hidden neither in the rest of a long line nor from the trial', () => {
    for (const [file, bytes] of [
      ['a.ndb', 8190],
      ['a.hdb', 8190],
      ['a.ldb', 32_767],
    ] as const) {
      const fits = 'x'.repeat(bytes)
      assert.deepEqual([isTooLong(file, fits), isTooLong(file, `${fits}x`)], [false, true], file)
    }
    assert.equal(findSignatureName('a.ndb', ' Heuristics.X:0:*:6162'), 'Heuristics.X')
    assert.equal(findReservedMatch('stream: Heuristics.Encrypted.X.UNOFFICIAL FOUND'), 'Heuristics.Encrypted.X')
    for (const reply of ['stream: OK', 'stream: Heuristics.Encrypted.Zip FOUND', 'stream: Feed.One.UNOFFICIAL FOUND']) {
      assert.equal(findReservedMatch(reply), undefined, reply)
    }
  })

  test('a rule is made private where it is certain, and nowhere else', () => {
    const plain = 'rule a { condition: true }\n'
    assert.equal(hideRule(plain, 'a'), `private ${plain}`)
    assert.equal(
      hideRule('global rule a : tag\n{ condition: b }', 'a'),
      'global private rule a : tag\n{ condition: b }',
    )
    assert.equal(
      hideRule('rule ab { condition: true }\nrule a { condition: ab }', 'ab'),
      `private rule ab { condition: true }\nrule a { condition: ab }`,
    )
    for (const text of [
      'private rule a { condition: true }',
      `/*\nrule a {\n*/\n${plain}`,
      `rule b { condition: true } ${plain}`,
      'rule b { strings: $x = "rule a" condition: $x }',
    ]) {
      assert.equal(hideRule(text, 'a'), undefined, text)
    }
  })

  test('rules are found outside of comments, also when all are private', () => {
    const texts: [text: string, rules: 'none' | 'private' | 'public'][] = [
      ['', 'none'],
      ['import "pe"\n// rule a { condition: true }\n/* rule b\n*/', 'none'],
      ['global private rule a { condition: true }', 'private'],
      ['/* */ rule one_line { condition: true }', 'public'],
      ['private rule a { condition: true } global rule b { condition: a }', 'public'],
    ]
    for (const [text, rules] of texts) {
      assert.deepEqual([hasRule(text), hasPublicRule(text)], [rules !== 'none', rules === 'public'], text)
    }
  })

  test('presets have their own names, and addresses that may be called', () => {
    assert.equal(new Set(presets.map(({ name }) => name)).size, presets.length)
    const policy = makeAddressPolicy([])
    for (const { name, url, sha256 = url } of presets) {
      assert.match(name, /^[a-z0-9]+(-[a-z0-9]+)*$/)
      for (const address of [url, sha256]) {
        assert.match(address, /^https:/)
        assert.deepEqual(checkWebAddress(address, policy), [])
      }
    }
  })
})
