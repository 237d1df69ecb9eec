import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateRawSync, gzipSync } from 'node:zlib'
import { headBytes } from '../../src/domain/content/content.ts'
import { findMediaType } from '../../src/domain/content/media-type.ts'

const bytes = (...parts: (string | number[] | Buffer)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))))

const find = (head: Buffer | string, length?: number) => {
  const buffer = typeof head === 'string' ? Buffer.from(head) : head
  return findMediaType(buffer, length ?? buffer.length)
}

/** Local entries only: that is all of an archive that its head shows. */
function zip(entries: Record<string, string>, isStreamed = false): Buffer {
  const parts = Object.entries(entries).map(([name, text]) => {
    const data = name === 'mimetype' ? Buffer.from(text) : deflateRawSync(text)
    const header = Buffer.alloc(30)
    header.writeUInt32LE(0x04034b50, 0)
    header.writeUInt16LE(isStreamed ? 8 : 0, 6)
    header.writeUInt16LE(name === 'mimetype' ? 0 : 8, 8)
    if (!isStreamed) header.writeUInt32LE(data.length, 18)
    header.writeUInt16LE(name.length, 26)
    return Buffer.concat([
      header,
      Buffer.from(name),
      data,
      isStreamed ? Buffer.from('PK\x07\x08sizesizesize') : Buffer.of(),
    ])
  })
  return Buffer.concat(parts)
}

const office = (main: string) => `<?xml version="1.0"?><Types><Override ContentType="${main}.main+xml"/></Types>`

function elf(type: number): Buffer {
  const head = Buffer.alloc(128)
  head.write('\x7fELF\x02\x01\x01', 'latin1')
  head.writeUInt16LE(type, 16)
  return head
}

function portable(): Buffer {
  const head = Buffer.alloc(256)
  head.write('MZ')
  head.writeUInt32LE(128, 60)
  head.write('PE\0\0', 128)
  return head
}

const ole = (stream: string) =>
  bytes([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1], Buffer.alloc(504), Buffer.from(stream, 'utf16le'), [0, 0])

const word = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
const texts: [string, string][] = [
  ['Hello, world.\n', 'text/plain; charset=us-ascii'],
  ['Grüße aus Köln\n', 'text/plain; charset=utf-8'],
  ['<!DOCTYPE html><html><body><svg></svg>', 'text/html; charset=us-ascii'],
  ['\n  <html lang="en">', 'text/html; charset=us-ascii'],
  ['<?xml version="1.0"?><note/>', 'text/xml; charset=us-ascii'],
  ['<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml; charset=us-ascii'],
  ['{"a": [1, 2, {"b": null}]}', 'application/json; charset=us-ascii'],
  ['{"a": 1}\n{"a": 2}\n', 'application/x-ndjson; charset=us-ascii'],
  ['{"a": [1, 2, {"b": null}', 'text/plain; charset=us-ascii'],
  ['[section]\nname = value\n', 'text/plain; charset=us-ascii'],
  ['a,b\n"1,5",2\n3,4\n', 'text/csv; charset=us-ascii'],
  ['From: a@b.example\nTo: c@d.example\nSubject: x\n\nhi\n', 'message/rfc822; charset=us-ascii'],
  ['From: the top of the hill\none sees far.\n', 'text/plain; charset=us-ascii'],
  ['{\\rtf1\\ansi hello}', 'text/rtf; charset=us-ascii'],
  ['%!PS-Adobe-3.0\n', 'application/postscript'],
  ['%PDF-1.4\n1 0 obj\n', 'application/pdf'],
  ['#!/bin/sh\necho hi\n', 'text/x-shellscript; charset=us-ascii'],
  ['#!/usr/bin/env -S python3 -u\n', 'text/x-script.python; charset=us-ascii'],
  ['import os\n\ndef main(a, b):\n    pass\n', 'text/x-script.python; charset=us-ascii'],
  ['#! /usr/bin/perl -w\n', 'text/x-perl; charset=us-ascii'],
  ['<?php echo 1;', 'text/x-php; charset=us-ascii'],
  ['import { a } from "./a.js"\n', 'application/javascript; charset=us-ascii'],
  ['#include <stdio.h>\n', 'text/x-c; charset=us-ascii'],
  ['@echo off\r\ndir\r\n', 'text/x-msdos-batch; charset=us-ascii'],
  ['--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n', 'text/x-diff; charset=us-ascii'],
  ['BEGIN:VCALENDAR\r\n', 'text/calendar; charset=us-ascii'],
  ["'''What the module does.'''\n\nimport os\n", 'text/x-script.python; charset=us-ascii'],
  ["'''\n''' A comment\n.TH NAME 1\n", 'text/troff; charset=us-ascii'],
  ['\'\\" t\n.TH NAME 1\n', 'text/troff; charset=us-ascii'],
  ['WARC/1.0\r\nWARC-Type: warcinfo\r\n\r\n', 'application/warc'],
  ['-----BEGIN CERTIFICATE-----\nMIIB\n', 'text/plain; charset=us-ascii'],
]

const binaries: [Buffer, string][] = [
  [bytes([0x89], 'PNG\r\n\x1a\n', [0, 0, 0, 13], 'IHDR', Buffer.alloc(25), 'IDAT'), 'image/png'],
  [bytes([0xff, 0xd8, 0xff, 0xe0, 0, 16], 'JFIF\0', Buffer.alloc(32)), 'image/jpeg'],
  [gzipSync('x'), 'application/gzip'],
  [bytes('7z', [0xbc, 0xaf, 0x27, 0x1c], Buffer.alloc(32)), 'application/x-7z-compressed'],
  [bytes('SQLite format 3\0', Buffer.alloc(100)), 'application/vnd.sqlite3'],
  [bytes([0xde, 0x12, 0x04, 0x95], Buffer.alloc(24)), 'application/x-gettext-translation'],
  [bytes([0x95, 0x04, 0x12, 0xde], Buffer.alloc(24)), 'application/x-gettext-translation'],
  [bytes('MSWIM\0\0\0', [208, 0, 0, 0], Buffer.alloc(32)), 'application/x-ms-wim'],
  [bytes('WLPWM\0\0\0', [208, 0, 0, 0], Buffer.alloc(32)), 'application/x-ms-wim'],
  [bytes('QFI', [0xfb, 0, 0, 0, 3], Buffer.alloc(32)), 'application/x-qemu-disk'],
  [bytes('xar!', [0, 28, 0, 1], Buffer.alloc(32)), 'application/x-xar'],
  [bytes('WARC/1.0\r\n\r\n', [0, 1, 2, 3]), 'application/warc'],
  [bytes('\0asm', [1, 0, 0, 0]), 'application/wasm'],
  [bytes([0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61], Buffer.alloc(32)), 'application/x-java-applet'],
  [bytes([0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 2], Buffer.alloc(32)), 'application/x-mach-binary'],
  [bytes([0xcf, 0xfa, 0xed, 0xfe], Buffer.alloc(32)), 'application/x-mach-binary'],
  [elf(1), 'application/x-object'],
  [elf(2), 'application/x-executable'],
  [elf(3), 'application/x-sharedlib'],
  [elf(4), 'application/x-coredump'],
  [portable(), 'application/vnd.microsoft.portable-executable'],
  [bytes('MZ', Buffer.alloc(100)), 'application/x-dosexec'],
  [ole('WordDocument'), 'application/msword'],
  [ole('Workbook'), 'application/vnd.ms-excel'],
  [ole('Other'), 'application/x-ole-storage'],
  [bytes([0, 1, 2, 3], '%PDF-1.7\n'), 'application/pdf'],
  [zip({ 'a.txt': 'a' }), 'application/zip'],
  [zip({ '[Content_Types].xml': office(word), 'word/document.xml': '' }), word],
  [zip({ '[Content_Types].xml': office(word) }, true), word],
  [zip({ 'xl/workbook.xml': '' }), 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  [
    zip({ '[Content_Types].xml': office('application/vnd.ms-word.document.macroEnabled') }),
    'application/vnd.ms-word.document.macroEnabled.12',
  ],
  [zip({ mimetype: 'application/vnd.oasis.opendocument.text' }), 'application/vnd.oasis.opendocument.text'],
  [zip({ mimetype: 'application/epub+zip' }), 'application/epub+zip'],
  [zip({ 'META-INF/MANIFEST.MF': 'Manifest-Version: 1.0' }), 'application/java-archive'],
  [zip({ 'META-INF/MANIFEST.MF': '', 'classes.dex': '' }), 'application/vnd.android.package-archive'],
  [bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), 'application/octet-stream'],
]

test('kinds of text are told apart and carry their charset', async () => {
  for (const [text, wanted] of texts) assert.equal(await find(text), wanted, text)
})

test('kinds of binary content are told apart', async () => {
  for (const [head, wanted] of binaries) assert.equal(await find(head), wanted, head.toString('latin1', 0, 80))
})

test('the charset follows the bytes', async () => {
  const utf16 = Buffer.from('\ufeffHello', 'utf16le')
  assert.equal(await find(utf16), 'text/plain; charset=utf-16le')
  assert.equal(await find(Buffer.from(utf16).swap16()), 'text/plain; charset=utf-16be')
  assert.equal(await find(Buffer.from('Hello there', 'utf16le')), 'text/plain; charset=utf-16le')
  assert.equal(await find(bytes([0xff, 0xfe, 0, 0], 'H\0\0\0i\0\0\0')), 'text/plain; charset=utf-32le')
  assert.equal(await find('\ufeff{"a": 1}'), 'application/json; charset=utf-8')
  assert.equal(await find(bytes('caf', [0xe9], ' noir')), 'text/plain; charset=iso-8859-1')
  assert.equal(await find(bytes([0x93], 'quoted', [0x94])), 'text/plain; charset=windows-1252')
})

test('a character cut by the end of the head is still UTF-8, one cut by the end of the content is not', async () => {
  for (const cut of [1, 2, 3]) {
    const head = Buffer.concat([Buffer.from('smile: '), Buffer.from('😀').subarray(0, cut)])
    assert.match(await find(head, 100_000), /charset=utf-8$/)
    assert.doesNotMatch(await find(head), /charset=utf-8$/)
  }
})

test('JSON that goes on behind the head is JSON still', async () => {
  const json = JSON.stringify(
    Array.from({ length: 5000 }, (_, id) => ({ id, name: `n${id}`, tags: ['a', null, 1.5e3] })),
  )
  for (const end of [9000, 20_000, headBytes]) {
    assert.equal(await find(json.slice(0, end), json.length), 'application/json; charset=us-ascii')
  }
})

test('nothing is unknown binary', async () => {
  assert.equal(await find(''), 'application/octet-stream')
})

const syntax = /^[a-z]+\/[A-Za-z0-9][A-Za-z0-9.+_-]*(; charset=[a-z0-9-]+)?$/

test('truncated and mutated heads never throw and always have a well-formed type', async () => {
  const samples = [...binaries.map(([head]) => head), ...texts.map(([text]) => Buffer.from(text))]
  let state = 1
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >>> 8) % below
  }
  for (const sample of samples) {
    for (let end = 0; end <= Math.min(sample.length, 160); end++) {
      assert.match(await find(sample.subarray(0, end), sample.length), syntax)
    }
    for (let round = 0; round < 40; round++) {
      const mutated = Buffer.concat([sample, samples[random(samples.length)] ?? Buffer.of()])
      for (let flips = 0; flips < 8; flips++) mutated[random(Math.min(mutated.length, 300))] = random(256)
      assert.match(await find(mutated, random(2) * 1_000_000), syntax, mutated.toString('hex'))
    }
  }
})

/** At first use a head takes at most 12 ms of processor time; a pattern that backtracks takes hundreds. */
const limitMs = 100

test('content made to be slow takes little processor time', async () => {
  const fill = (text: string) => text.repeat(Math.ceil(headBytes / text.length)).slice(0, headBytes)
  const code = ['typeof ', 'module.exports', 'main(', 'def a', '<', '=', '(', '\\']
  const starts = [...code, '{"a":', '[', '"', 'a,', 'From @', 'X-', '\n']
  const heads = [
    ...starts.map((start) => Buffer.from(fill(start))),
    ...['const ', 'import ', 'From ', '#! ', '<?xml '].map((start) => Buffer.from(start + fill('= @'))),
    bytes(fill('PK\x03\x04')),
    zip(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`word${i}`, '']))),
    zip({ '[Content_Types].xml': ' '.repeat(50_000_000) }),
    bytes('ID3\x04\0\0', fill('\0\0\0\x01')),
    bytes([0x89], 'PNG\r\n\x1a\n', fill('\0\0\0\0abcd1234')),
    bytes([0x1a, 0x45, 0xdf, 0xa3], fill('\x42\x82\x81')),
    bytes(fill('\0\0\0\x08ftyp')),
    bytes('II*\0\x08\0\0\0', fill('\xff')),
  ]
  for (const head of heads) {
    let ms = Number.POSITIVE_INFINITY
    // A pattern that backtracks is slow each time; the collector or the compiler of Node may take the time of one try.
    for (let tries = 0; tries < 5 && ms >= limitMs; tries++) {
      const before = process.threadCpuUsage()
      assert.match(await find(head, 1e9), syntax)
      ms = process.threadCpuUsage(before).user / 1000
    }
    assert.ok(ms < limitMs, `${ms} ms for ${JSON.stringify(head.toString('latin1', 0, 40))}`)
  }
})
