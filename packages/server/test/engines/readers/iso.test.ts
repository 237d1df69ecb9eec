import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isoReader } from '../../../src/engines/unpack/child/readers/iso.ts'
import { hasMember, lacks, run, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from('The content of a file that some programs see. '.repeat(80))
const skip = lacks('genisoimage', '-version')

describe('files that are not in all trees of a disc are given', { skip }, () => {
  let directory = ''
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'assay-iso-'))
    mkdirSync(join(directory, 'root', 'folder'), { recursive: true })
    writeFileSync(join(directory, 'root', 'folder', 'payload.com'), payload)
    for (let n = 0; n < 80; n++) writeFileSync(join(directory, 'root', `text-${n}.txt`), `A harmless text ${n}.`)
    writeFileSync(join(directory, 'root', 'empty.txt'), '')
  })
  after(() => rmSync(directory, { recursive: true }))
  const newDisc = (...options: string[]) => run('genisoimage', ['-quiet', ...options, 'root'], { cwd: directory })

  test('none where the trees agree, or where there is one', async () => {
    for (const options of [['-J'], ['-J', '-R'], ['-iso-level', '4', '-J']]) {
      const { given, doubts, needsSevenZip } = await tryReader(isoReader, newDisc(...options))
      assert.deepEqual([given, doubts, needsSevenZip], [[], [], true], options.join(' '))
    }
    assert.equal((await tryReader(isoReader, newDisc('-R'))).needsSevenZip, undefined)
  })

  test('a file, or a whole folder, in one tree only', async () => {
    for (const [options, path] of [
      [['-J', '-hide', 'payload.com'], 'folder/payload.com'],
      [['-J', '-hide-joliet', 'payload.com'], 'FOLDER/PAYLOAD.COM'],
      [['-J', '-hide', 'folder'], 'folder/payload.com'],
      [['-J', '-hide-joliet', 'folder'], 'FOLDER/PAYLOAD.COM'],
    ] as const) {
      const { given, doubts } = await tryReader(isoReader, newDisc(...options))
      assert.deepEqual(
        given.map((member) => member.path),
        [path],
        options.join(' '),
      )
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
    }
  })

  test('a record whose numbers contradict each other, or whose data are missing, is a doubt', async () => {
    const disc = newDisc('-J', '-no-pad')
    const record = disc.indexOf('TEXT_0.TXT;1') - 33
    assert.ok(record > 0)
    const contradicting = Buffer.from(disc)
    contradicting.writeUInt32BE(99, record + 6)
    assert.deepEqual((await tryReader(isoReader, contradicting)).doubts, ['UnsupportedContainer'])
    const interleaved = Buffer.from(disc)
    interleaved[record + 26] = 1
    assert.deepEqual((await tryReader(isoReader, interleaved)).doubts, ['UnsupportedContainer'])
    const cut = disc.subarray(0, disc.length - 4096)
    assert.deepEqual((await tryReader(isoReader, cut)).doubts, ['UnsupportedContainer'])
  })

  test('bad bytes never make the reader fail', async () => {
    await fuzzReader(isoReader, [newDisc('-J'), newDisc('-J', '-hide', 'folder')], 300)
  })
})
