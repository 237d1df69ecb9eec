import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { mail, pdf, sevenZip, tar, zip } from './archives.ts'
import { needsClamscan, runClamscan, scanFiles } from './clamscan.ts'
import { eicar, prose } from './fragments.ts'

const name = 'Eicar-Test-Signature'

test('the EICAR test file is found as it is and in every layer that ClamAV opens', needsClamscan, async () => {
  const member = { name: 'eicar.com', data: eicar }
  const found = scanFiles({
    'plain.com': eicar,
    'with-whitespace.com': `${eicar}\r\n \t`,
    'deflated.zip': zip([member]),
    'stored.zip': zip([{ ...member, method: 0 }]),
    'zip-in-zip.zip': zip([{ name: 'inner.zip', data: zip([member]) }]),
    'stored-in-stored.zip': zip([{ name: 'inner.zip', data: zip([{ ...member, method: 0 }]), method: 0 }]),
    'behind-a-program.exe': Buffer.concat([Buffer.from('MZ'), Buffer.alloc(600), zip([member])]),
    'plain.tar': tar('eicar.com', eicar),
    'tar.gz': gzipSync(tar('eicar.com', eicar)),
    'lzma.7z': await sevenZip('7z', eicar, '-m0=LZMA'),
    'lzma2.7z': await sevenZip('7z', eicar, '-m0=LZMA2'),
    'mail.eml': mail(eicar),
    'attached.pdf': pdf(eicar),
    'embedded.docx': zip([
      { name: '[Content_Types].xml', data: '<?xml version="1.0"?><Types/>' },
      { name: 'word/document.xml', data: '<?xml version="1.0"?><w:document/>' },
      { name: 'word/embeddings/oleObject1.bin', data: eicar },
    ]),
  })
  assert.deepEqual([...new Set(Object.values(found))], [name], JSON.stringify(found, null, 2))
})

test('a text that quotes the EICAR test file is clean', needsClamscan, () => {
  const found = scanFiles({
    'short.txt': `The test file is ${eicar} and nothing else.`,
    'long.txt': `${prose(5000)}${eicar}\n${prose(5000)}`,
    'page.html': `<html><body><p>The test file:</p><pre>${eicar}</pre></body></html>`,
    'quoted.zip': zip([{ name: 'readme.txt', data: `${prose(500)}${eicar}` }]),
  })
  assert.deepEqual([...new Set(Object.values(found))], [null], JSON.stringify(found, null, 2))
})

const testFiles = '/usr/share/clamav-testfiles'

test('all of the test files that come with ClamAV are found', { skip: !existsSync(testFiles) }, () => {
  const answers = [...runClamscan([testFiles])]
  assert.equal(answers.length, readdirSync(testFiles).length)
  assert.deepEqual(
    answers.filter(([, answer]) => !answer.startsWith('Clamav.Test.File')),
    [],
  )
})
