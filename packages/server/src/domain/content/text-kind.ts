import { isUtf8 } from 'node:buffer'
import { findDataKind, findSourceKind } from './text-patterns.ts'

/** The media type of a text, by its first characters, then by the format of data or mail, then by its lines. */
export function findTextKind({ start, isWhole }: Text): string {
  return (
    findByStart(start) ??
    findDataKind(start, isWhole) ??
    findMessageKind(start) ??
    findDiff(start) ??
    findSourceKind(start) ??
    'text/plain'
  )
}

function findByStart(text: string): string | undefined {
  const find = finders[text[0] ?? '']
  return find?.(text) ?? (text.charCodeAt(0) <= 0x20 ? findXml(text.trimStart()) : undefined)
}

/** Checks by the first character, so that plain text passes at most one of them. */
const finders: Record<string, (text: string) => string | undefined> = {
  '#': (text) => (text.startsWith('#!') ? findScript(text) : undefined),
  '<': (text) => (text.startsWith('<?php') ? 'text/x-php' : findXml(text)),
  '%': oneOf(['%PDF-', 'application/pdf'], ['%!', 'application/postscript']),
  '\x04': oneOf(['\x04%!', 'application/postscript']),
  '{': oneOf(['{\\rtf', 'text/rtf']),
  '!': oneOf(['!<arch>\n', 'application/x-archive']),
  '/': oneOf(['/* XPM */', 'image/x-xpixmap']),
  G: oneOf(['GIF87a', 'image/gif'], ['GIF89a', 'image/gif']),
  B: oneOf(['BEGIN:VCALENDAR', 'text/calendar'], ['BEGIN:VCARD', 'text/vcard']),
  W: oneOf(
    ['WEBVTT', 'text/vtt'],
    ['Windows Registry Editor Version', 'text/x-ms-regedit'],
    ['WARC/0.', 'application/warc'],
    ['WARC/1.', 'application/warc'],
  ),
  '(': oneOf(['(This file must be converted with BinHex', 'application/mac-binhex40']),
  '0': oneOf(['07070', 'application/x-cpio']),
  '1': (text) => (/^1\r?\n\d\d:\d\d:\d\d[,.]\d{3} --> /.test(text) ? 'application/x-subrip' : undefined),
  '-': oneOf(
    ['-----BEGIN PGP PUBLIC KEY BLOCK-', 'application/pgp-keys'],
    ['-----BEGIN PGP MESSAGE-', 'application/pgp-encrypted'],
    ['-----BEGIN PGP SIGNATURE-', 'application/pgp-signature'],
  ),
  '"': oneOf(['"""', 'text/x-script.python']),
  '.': (text) => (/^\.(\\"|[A-Za-z]{2}\b)/.test(text) ? 'text/troff' : undefined),
  "'": findQuoted,
  '\\': oneOf(['\\"', 'text/troff'], ['\\input texinfo', 'text/x-texinfo']),
  ';': (text) => (/^;;.*\n/.test(text) && /^\((def|setq|require|provide)/m.test(text) ? 'text/x-lisp' : undefined),
  '@': (text) => (/^@(echo off|rem|setlocal)\b/i.test(text) ? 'text/x-msdos-batch' : undefined),
}

/** Three quotes begin a string of Python, which ends with three more, and a comment of troff. */
function findQuoted(text: string): string | undefined {
  if (!/^'(''|\.?\\")/.test(text)) return undefined
  const isPython = text.startsWith("'''") && text.includes("'''", 3) && !/^([.'][A-Za-z]{2}\b|[.']\\")/m.test(text)
  return isPython ? 'text/x-script.python' : 'text/troff'
}

function oneOf(...starts: [string, string][]) {
  return (text: string) => starts.find(([start]) => text.startsWith(start))?.[1]
}

const interpreters: [RegExp, string][] = [
  [/^(ba|da|a|k|mk|pdk|z|c|tc|fi)?sh$/, 'text/x-shellscript'],
  [/^(python|pypy)[\d.]*$/, 'text/x-script.python'],
  [/^perl[\d.]*(-.*)?$/, 'text/x-perl'],
  [/^ruby[\d.]*$/, 'text/x-ruby'],
  [/^node(js)?$/, 'application/javascript'],
  [/^php[\d.]*$/, 'text/x-php'],
  [/^[gnm]?awk$/, 'text/x-awk'],
  [/^(tclsh|wish|expect)[\d.]*$/, 'text/x-tcl'],
  [/^lua(jit)?[\d.]*$/, 'text/x-lua'],
]

/** Finds the interpreter in `#! /usr/bin/env -S python3 -u`: the first word that is neither env nor an option. */
function findScript(text: string): string | undefined {
  const words = text.slice(2, 200).split('\n', 1)[0]?.trim().split(/\s+/) ?? []
  const name = words
    .map((word) => word.slice(word.lastIndexOf('/') + 1))
    .find((word) => !/^(env|-.*|\w+=.*)$/.test(word))
  return interpreters.find(([test]) => test.test(name ?? ''))?.[1]
}

/** XML has a declaration; its first element tells SVG and HTML apart. */
function findXml(text: string): string | undefined {
  if (/^<(\?xml|!--|!DOCTYPE)/i.test(text)) {
    const start = text.slice(0, 4096)
    const first = /<(?:!DOCTYPE )?(svg|html)\b/i.exec(start)?.[1]
    if (first !== undefined) return first.toLowerCase() === 'svg' ? 'image/svg+xml' : 'text/html'
    return text.startsWith('<?xml') ? 'text/xml' : undefined
  }
  if (/^<svg\b/.test(text)) return 'image/svg+xml'
  return /^<html\b/i.test(text) ? 'text/html' : undefined
}

const mailField =
  /^(Return-Path|Received|Delivered-To|From|To|Cc|Date|Subject|Message-ID|MIME-Version|Reply-To|X-[\w-]+):/i

/** Mail begins with header fields. Two known fields are required, because any text may begin with one. */
function findMessageKind(text: string): string | undefined {
  if (!/^[A-Z][\w-]*[: ]/i.test(text)) return undefined
  if (/^From [^\s@]{1,100}@[^\s@]{1,200} .*\d\d:\d\d/.test(text)) return 'application/mbox'
  if (/^(Path: |Xref: |Newsgroups: |Article \d+ of )/.test(text)) return 'message/news'
  if (!mailField.test(text)) return undefined
  const fields =
    text
      .slice(0, 4096)
      .split(/\r?\n\r?\n/, 1)[0]
      ?.split(/\r?\n(?![ \t])/) ?? []
  return fields.filter((field) => mailField.test(field)).length >= 2 ? 'message/rfc822' : undefined
}

function findDiff(text: string): string | undefined {
  if (/^(diff |Index: |Only in |\*\*\* .*\n--- )/.test(text)) return 'text/x-diff'
  return text.includes('\n@@ ') && /^--- .*\n\+\+\+ .*\n@@ /m.test(text) ? 'text/x-diff' : undefined
}

/** The charset of a text, and its beginning decoded for patterns. `isWhole` when that is the whole text. */
export type Text = { charset: string; start: string; isWhole: boolean }

/** The first lines are enough to tell kinds of text apart. */
const startBytes = 8192

/** Returns undefined for bytes that are not text. With `isCut` the last character may be incomplete. */
export function findText(head: Buffer, isCut: boolean): Text | undefined {
  const markedText = findMarkedText(head, isCut)
  if (markedText !== undefined) return markedText
  const seenClasses = collectClasses(head)
  if ((seenClasses & control) !== 0) return findUnmarkedUtf16(head, isCut)
  const charset = findEightBitCharset(head, seenClasses, isCut)
  return newText(charset, head, 0, isCut, (bytes) => bytes.toString('latin1'))
}

const plain = 1
const control = 2
const high = 4
/** Bytes 0x80 to 0x9f: control characters in ISO 8859, quotes and dashes in Windows code pages. */
const windows = 8

const classes = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0xa0) return high
  if (byte >= 0x80) return windows
  // Logs and terminal recordings contain the characters from bell to carriage return, and escape.
  return (byte >= 0x20 && byte !== 0x7f) || (byte >= 0x07 && byte <= 0x0d) || byte === 0x1b ? plain : control
})

/** The classes of two bytes: a look-up for each pair takes half as long as one for each byte. */
const classesOfPairs = new Uint8Array(65_536)
for (let pair = 0; pair < classesOfPairs.length; pair++) {
  classesOfPairs[pair] = (classes[pair & 0xff] as number) | (classes[pair >> 8] as number)
}

/** Content lies in resizable memory, in which V8 reads single bytes two to four times as slowly as in a copy. */
const chunk = new Uint8Array(1024)
const pairsOfChunk = new Uint16Array(chunk.buffer)

/**
 * Collects the classes of all bytes, with one table look-up per pair. It stops at the first chunk with a control
 * character, which binary content soon has. Checking after each pair would take longer than the look-up.
 */
function collectClasses(head: Buffer): number {
  let seenClasses = 0
  for (let at = 0; at < head.length && (seenClasses & control) === 0; at += chunk.length) {
    const bytes = head.copy(chunk, 0, at)
    // A single byte at the end makes a pair with itself.
    if (bytes % 2 === 1) chunk[bytes] = chunk[bytes - 1] as number
    const pairs = Math.ceil(bytes / 2)
    for (let i = 0; i < pairs; i++) seenClasses |= classesOfPairs[pairsOfChunk[i] as number] as number
  }
  return seenClasses
}

function findEightBitCharset(head: Buffer, seenClasses: number, isCut: boolean): string {
  if (seenClasses === plain) return 'us-ascii'
  if (isUtf8(isCut ? withoutCutCharacter(head) : head)) return 'utf-8'
  return (seenClasses & windows) === 0 ? 'iso-8859-1' : 'windows-1252'
}

/** Removes an incomplete UTF-8 character, of at most three bytes, from the end. */
function withoutCutCharacter(head: Buffer): Buffer {
  for (let back = 1; back <= Math.min(4, head.length); back++) {
    const byte = head[head.length - back] as number
    if (byte < 0x80) break
    if (byte < 0xc0) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return length > back ? head.subarray(0, head.length - back) : head
  }
  return head
}

/** Text with a byte order mark. The rest is checked too, because `ff fe` also begins MPEG frames. */
function findMarkedText(head: Buffer, isCut: boolean): Text | undefined {
  const [a, b, c, d] = head
  if (a === 0xef && b === 0xbb && c === 0xbf)
    return (collectClasses(head) & control) === 0 && isUtf8(isCut ? withoutCutCharacter(head) : head)
      ? newText('utf-8', head, 3, isCut, (bytes) => bytes.toString('latin1'))
      : undefined
  if (a === 0xff && b === 0xfe && c === 0 && d === 0)
    return findValidText(newText('utf-32le', head, 4, isCut, toUtf32(0)))
  if (a === 0 && b === 0 && c === 0xfe && d === 0xff)
    return findValidText(newText('utf-32be', head, 4, isCut, toUtf32(3)))
  if (a === 0xff && b === 0xfe) return findValidText(newText('utf-16le', head, 2, isCut, toUtf16le))
  if (a === 0xfe && b === 0xff) return findValidText(newText('utf-16be', head, 2, isCut, toUtf16be))
  return undefined
}

/** UTF-16 without a byte order mark, as Windows programs write it: in Latin text every second byte is zero. */
function findUnmarkedUtf16(head: Buffer, isCut: boolean): Text | undefined {
  if (head.length < 4 || head.length % 2 !== 0) return undefined
  if (isLatinPair(head, 0, 1)) return findValidText(newText('utf-16le', head, 0, isCut, toUtf16le))
  if (isLatinPair(head, 1, 0)) return findValidText(newText('utf-16be', head, 0, isCut, toUtf16be))
  return undefined
}

const isLatinPair = (head: Buffer, letters: number, zeros: number) =>
  head
    .subarray(0, 1024)
    .every((byte, i) => (i % 2 === zeros ? byte === 0 : i % 2 !== letters || classes[byte] === plain))

/** Rejects decoded text with an unpaired surrogate, a NUL or another control character. */
const findValidText = (text: Text): Text | undefined =>
  text.start.isWellFormed() && !/[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f\ufffd-\uffff]/.test(text.start) ? text : undefined

function newText(charset: string, head: Buffer, from: number, isCut: boolean, decode: (bytes: Buffer) => string): Text {
  const end = Math.min(head.length, from + startBytes)
  return { charset, start: decode(head.subarray(from, end)), isWhole: !isCut && end === head.length }
}

const toUtf16le = (bytes: Buffer) => withoutHalf(bytes.subarray(0, bytes.length & ~1).toString('utf16le'))

const toUtf16be = (bytes: Buffer) =>
  withoutHalf(
    Buffer.from(bytes.subarray(0, bytes.length & ~1))
      .swap16()
      .toString('utf16le'),
  )

/** Removes half of a surrogate pair, which the cut may have divided. */
const withoutHalf = (text: string) => (/[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text)

/** Decodes UTF-32. Characters beyond Latin-1 become one letter that no pattern contains. */
const toUtf32 = (low: 0 | 3) => (bytes: Buffer) => {
  let text = ''
  for (let i = 0; i + 4 <= bytes.length; i += 4) {
    const code = low === 0 ? bytes.readUInt32LE(i) : bytes.readUInt32BE(i)
    text += code > 0x10ffff ? '\0' : code < 0x100 ? String.fromCharCode(code) : '\u0100'
  }
  return text
}
