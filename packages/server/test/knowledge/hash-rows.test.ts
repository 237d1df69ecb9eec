import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type HashReader, makeHashReader, newHashRows } from '../../src/domain/knowledge/hash-csv.ts'
import { signatureReader } from '../../src/domain/knowledge/import-hashes.ts'

const hash = '0123456789abcdefABCDEF'.repeat(3).slice(0, 64)

const rows = newHashRows()

/** The row of a line: undefined if the line is not plain. */
function addPlain(line: string, reader: HashReader): string | undefined {
  const form = reader.findForm()
  assert(form)
  const bytes = Buffer.from(`before\n${line}\nafter`)
  rows.clear()
  const isAdded = rows.addPlain(bytes, 7, bytes.length - 6, form)
  assert.equal(rows.count(), isAdded ? 1 : 0)
  return isAdded ? rows.get().rows.toString() : undefined
}

function addText(line: string, reader: HashReader): string | undefined {
  const row = reader.readLine(line)
  if (row === undefined || 'fault' in row) return undefined
  rows.clear()
  rows.add(row.sha256, row.name)
  return rows.get().rows.toString()
}

const lines = [
  `x,${hash},Trojan.X,y`,
  `x,${hash},Trojan.X\r`,
  `,${hash},,`,
  `x,${hash}`,
  `x,${hash},${'n'.repeat(200)}`,
  `x,${hash},${'n'.repeat(201)}`,
  `x,${hash}, padded `,
  ` x , ${hash},name`,
  `x,"${hash}",name`,
  `x,${hash},name,"`,
  `x,${hash},\u00fcml\u00e4ut`,
  `x,${hash},a\tb`,
  `x,${hash.slice(1)},name`,
  `x,${hash}0,name`,
  `x,g${hash.slice(1)},name`,
  `#,${hash},name`,
  `x`,
  '',
  '\r',
  `${hash}:68:My.Malware`,
  `${hash}:*:My.Malware:73`,
  `${hash}:68:`,
  `${hash}:68`,
  '44d88612fea8a8f36de82e1278abb02f:68:Eicar',
]

test('the bytes of a plain line give the row that its text gives, and other lines give none', () => {
  for (const columns of [{ hash: '2', name: '3' }, { hash: '2' }]) {
    let plain = 0
    for (const line of lines) {
      const csv = makeHashReader(columns)
      csv.readLine(`x,${hash},first`)
      for (const reader of [csv, signatureReader]) {
        const row = addPlain(line, reader)
        if (row === undefined) continue
        plain++
        assert.equal(row, addText(line, reader), JSON.stringify(line))
      }
    }
    assert.ok(plain >= 8, `${plain} plain lines`)
  }
})

test('lines of any combination of parts are read alike as bytes and as text', () => {
  const parts = ['', ' ', '#', '"', ',', ':', '\t', '\r', 'x', '#old', 'Trojan.X', hash, `${hash},`, `,${hash}`]
  const csv = makeHashReader({ hash: '2', name: '3' })
  csv.readLine(`x,${hash},first`)
  const withoutName = makeHashReader({})
  withoutName.readLine(hash)
  let plain = 0
  const all = parts.flatMap((a) => parts.flatMap((b) => parts.flatMap((c) => parts.map((d) => a + b + c + d))))
  for (const line of all) {
    for (const reader of [csv, withoutName, signatureReader]) {
      const row = addPlain(line, reader)
      if (row === undefined) continue
      plain++
      assert.equal(row, addText(line, reader), JSON.stringify(line))
    }
  }
  assert.ok(plain > 1000, `${plain} plain lines`)
})

test('the form of a file is known from its first row on', () => {
  const reader = makeHashReader({ name: 'family' })
  reader.readLine('# a comment')
  reader.readLine('sha256,family')
  assert.equal(reader.findForm(), undefined)
  reader.readLine(`${hash},x`)
  assert.deepEqual(reader.findForm(), { separator: 44, hash: 0, name: 1, suffix: '' })
})

test('rows are full before a row could exceed their memory', () => {
  rows.clear()
  const name = '\u{ffff}'.repeat(200)
  while (!rows.isFull()) rows.add(hash, name)
  assert.equal(rows.get().rows.toString().split('\n').length - 1, rows.count())
  assert.ok(rows.get().rows.toString().endsWith(`${name}\n`))
})
