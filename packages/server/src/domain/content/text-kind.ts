import type { Text } from './charset.ts'
import { findDataKind } from './data-kind.ts'
import { findSourceKind } from './source-kind.ts'

/** The kind of a text by its beginning: how it starts, then whether it is data or markup, then what its lines look like. */
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

/** By the first character, so that plain text is asked at most one of these questions. */
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
  W: oneOf(['WEBVTT', 'text/vtt'], ['Windows Registry Editor Version', 'text/x-ms-regedit']),
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
  "'": oneOf(['\'\\"', 'text/troff'], ['\'.\\"', 'text/troff'], ["'''", 'text/troff']),
  '\\': oneOf(['\\"', 'text/troff'], ['\\input texinfo', 'text/x-texinfo']),
  ';': (text) => (/^;;.*\n/.test(text) && /^\((def|setq|require|provide)/m.test(text) ? 'text/x-lisp' : undefined),
  '@': (text) => (/^@(echo off|rem|setlocal)\b/i.test(text) ? 'text/x-msdos-batch' : undefined),
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

/** `#! /usr/bin/env -S python3 -u`: the first word that is neither a path to env nor an option. */
function findScript(text: string): string | undefined {
  const words = text.slice(2, 200).split('\n', 1)[0]?.trim().split(/\s+/) ?? []
  const name = words
    .map((word) => word.slice(word.lastIndexOf('/') + 1))
    .find((word) => !/^(env|-.*|\w+=.*)$/.test(word))
  return interpreters.find(([test]) => test.test(name ?? ''))?.[1]
}

/** XML says so; what it holds is told by the first elements. */
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

/** Mail begins with fields; one of them alone may be any text, so two known ones must follow each other closely. */
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
