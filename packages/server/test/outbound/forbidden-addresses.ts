import { notPublicHosts } from '../../../../acceptance/support/addresses.ts'

/** Names that mean loopback without any name server, in every spelling that a URL parser normalises. */
const localNames = [
  '%6c%6f%63alhost',
  'ｌｏｃａｌｈｏｓｔ',
  'LOCALHOST',
  'localhost',
  'localhost.',
  'a.localhost',
  'a.b.LocalHost',
  'a.localhost.',
]

/** Hosts of which every one leads to an address that is not public. */
export const forbiddenHosts: readonly string[] = [...notPublicHosts, ...localNames]

/** URLs without a valid host, with more than a host, or of another scheme. `PORT` is where a canary listens. */
export const forbiddenUrls: readonly string[] = [
  'http://[fe80::1%25lo]:PORT/',
  'http://[fe80::1%lo]:PORT/',
  'http://[::1%25lo]:PORT/',
  'http://[::1]x:PORT/',
  'http://user@127.0.0.1:PORT/',
  'http://user:pass@127.0.0.2:PORT/',
  'http://127.0.0.2@127.0.0.1:PORT/',
  'http://127.0.0.2:PORT@127.0.0.1:PORT/',
  'http://@127.0.0.1:PORT/',
  'http://127.0.0.1:PORT#@127.0.0.2/',
  'http://127.0.0.1:PORT\\@127.0.0.2/',
  'http:\\\\127.0.0.1:PORT/',
  'http:127.0.0.1:PORT/',
  'http:/127.0.0.1:PORT/',
  'http:///127.0.0.1:PORT/',
  '//127.0.0.1:PORT/',
  ' http://127.0.0.1:PORT/',
  'ht\ntp://127.0.0.1:PORT/',
  'http://127.0.0.1:PORT/\u0000',
  'http://127.0.0\t.1:PORT/',
  'http://127.0.0.1%00.test:PORT/',
  'http://:PORT/',
  'http://.:PORT/',
  'http://256.256.256.256:PORT/',
  'http://127.0.0.0x100:PORT/',
  'http://1.2.3.4.5:PORT/',
  'ftp://127.0.0.1:PORT/',
  'file:///etc/passwd',
  'file://127.0.0.1/etc/passwd',
  'data:text/plain,hello',
  'gopher://127.0.0.1:PORT/_x',
  'ws://127.0.0.1:PORT/',
  'javascript:1',
  'blob:http://127.0.0.1:PORT/x',
  'unix:/x',
  'http://127.0.0.2:22/',
  'http://127.0.0.2:25/',
  'http://127.0.0.2:0/',
  'http://127.0.0.2:6667/',
  'http://',
  '',
  `http://127.0.0.2:PORT/${'a'.repeat(2_048)}`,
]
