import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type HashColumns, type HashLine, makeHashReader } from '../../src/domain/knowledge/hash-csv.ts'
import { signatureReader } from '../../src/domain/knowledge/import-hashes.ts'

const [a, b] = ['a'.repeat(64), 'B'.repeat(64)]

const read = (text: string, columns: HashColumns = {}): HashLine[] =>
  text.split('\n').map(makeHashReader(columns).readLine)

test('a file of hashes alone has no names', () => {
  assert.deepEqual(read(`\u{feff}${a}\r\n${b}`), [
    { sha256: a, name: null },
    { sha256: b, name: null },
  ])
})

test('the header names the columns', () => {
  const file = `first_seen, SHA256_hash ,signature\n2026-01-01,${a},Trojan.X\n2026-01-02,${b},`
  assert.deepEqual(read(file, { name: 'Signature' }), [
    undefined,
    { sha256: a, name: 'Trojan.X' },
    { sha256: b, name: null },
  ])
})

test('columns can be given by number, also where the header is a comment', () => {
  const file = `# "name","hash"\n"Family ""one"", two", "${a}"`
  assert.deepEqual(read(file, { hash: '2', name: '1' }), [undefined, { sha256: a, name: 'Family "one", two' }])
})

test('without a header the first hash of the first row tells the column', () => {
  assert.deepEqual(read(`x,${a}\n${b},x`), [
    { sha256: a, name: null },
    { fault: 'there is no SHA-256 of 64 hexadecimal digits' },
  ])
})

test('broken rows are told from rows', () => {
  const file = `${a}\n${a.slice(1)}\n${a}0\n"${a}\n${'g'.repeat(64)}`
  const faults = read(file).map((line) => (line !== undefined && 'fault' in line ? line.fault : undefined))
  const noHash = 'there is no SHA-256 of 64 hexadecimal digits'
  assert.deepEqual(faults, [undefined, noHash, noHash, 'a quotation mark is not closed', noHash])
})

test('a column that the header lacks is refused, and so is a name without a header', () => {
  assert.throws(() => read('sha256,family', { name: 'signature' }), /no column signature. It has: sha256, family/)
  assert.throws(() => read(`${a},x`, { name: 'signature' }), /no header/)
})

test('names become one line of at most 200 characters', () => {
  const [, line] = read(`sha256,name\n${a},a\u0000b\u001b[1m${'x'.repeat(300)}`, { name: 'name' })
  assert(line !== undefined && 'name' in line)
  assert.equal(line.name?.length, 200)
  assert.doesNotMatch(line.name ?? '', /\p{Cc}/u)
})

test('SHA-256 signatures of ClamAV are rows, and other hashes are not', () => {
  const { readLine } = signatureReader
  assert.deepEqual(readLine(`${a}:68:My.Malware`), { sha256: a, name: 'My.Malware.UNOFFICIAL' })
  assert.deepEqual(readLine(`${a}:*:My.Malware:73`), { sha256: a, name: 'My.Malware.UNOFFICIAL' })
  assert.equal(readLine('44d88612fea8a8f36de82e1278abb02f:68:Eicar'), undefined)
})
