import assert from 'node:assert/strict'
import { test } from 'node:test'
import { notPublicHosts, publicHosts } from './addresses.ts'
import type { Subject } from './operation.ts'

/** Addresses that are refused, by reason. Those without blanks are listed in one text. */
const badUrls: Record<string, string[]> = {
  empty: [''],
  'not absolute': toWords('example.com /a //example.com/ www.example.com/a ?a #a http http:'),
  'repaired by parsers': toWords('http:example.com http:/example.com https:///example.com/ http:////a.com'),
  'another scheme': toWords(`ftp://example.com/ file:///etc/passwd data:,x javascript:1 gopher://a.com/
    blob:https://a.com/1 ws://a.com/ jar:http://a.com/!/ httpss://a.com/ view:x`),
  'no host': toWords('http:// http:/// http://?a http://#a http://:80/ https://.'),
  'a bad host': toWords(`http://[::1 http://[example.com]/ http://a<b/ http://exa%20mple.com/ http://a^b/
    http://1.2.3.4.5/ http://256.1.1.1/ http://1.2.3.08/ http://[fe80::1%25eth0]/ http://%/`),
  'a host that cannot exist': toWords(`http://a..b/ http://.a.com/ http://${'a'.repeat(64)}.com/ http://xn--a.com/
    http://${'a.'.repeat(127)}com/ http://xn--/ http://${'ü'.repeat(60)}.com/`),
  credentials: toWords(`http://u@example.com/ http://u:p@example.com/ http://:p@a.com/ http://@a.com/ https://:@a.com/
    http://a.com:80@b.com/ http://a.com%2f@b.com/ http://%75@a.com/`),
  blanks: [' http://a.com/', 'http://a.com/ ', 'http://a.com/a b', 'http://a.com/\u00a0', 'http://a .com/'],
  controls: ['http://a.com/\t', 'ht\ttp://a.com/', 'http://a.com/a\u0001', 'http://a.com/\u007f', '\u0000http://a.com'],
  backslashes: ['http:\\\\a.com\\', 'http://a.com\\@b.com/', 'http://a.com/a\\b', 'http://a.com?a\\b'],
  'a bad port': toWords(`http://a.com:0/ http://a.com:00/ http://a.com:22/ http://a.com:25/ https://a.com:6667/
    http://a.com:65536/ http://a.com:-1/ http://a.com:x/ http://a.com:6000/ http://a.com:10080/`),
  'too long': [toLength(2049)],
}

const goodUrls = [
  ...toWords(`http://example.com https://example.com/ HTTPS://EXAMPLE.COM/A http://example.com:8080/a?b=c#d
    http://example.com:80/ https://example.com:443 http://example.com:65535/ http://example.com:/
    http://münchen.example/straße http://xn--mnchen-3ya.example/ https://example.com./ http://a_b.example.com/
    http://example.com/%20%00?a=http://127.0.0.1/ http://example.com/@user http://example.com/?q=@ http://a.b/#@
    https://bucket.example.com/k%2Fey?X-Amz-Signature=0f&X-Amz-Date=2026 http://10.example.com/ http://1.2.3.4a/`),
  toLength(2048),
]

/** An address that the service would call: `file_url`, or `callback_url` of a submit. */
export function testUrlRules(subject: Subject, field: 'file_url' | 'callback_url') {
  const sendUrl = (url: unknown) => subject.sendFields({ [field]: url })

  test(`422: a ${field} that is not a plain absolute web address is refused`, async () => {
    for (const [why, urls] of Object.entries(badUrls)) {
      for (const url of urls) await subject.assertInvalid(await sendUrl(url), [field], `${why}: ${JSON.stringify(url)}`)
    }
  })

  test(`422: a ${field} with an address that is not public is refused, however it is spelled`, async () => {
    assert(notPublicHosts.length >= 60)
    for (const host of notPublicHosts) {
      await subject.assertInvalid(await sendUrl(`http://${host}/`), [field], host)
      await subject.assertInvalid(await sendUrl(`https://${host}:8443`), [field], `${host} with a port`)
    }
  })

  test(`a ${field} with a name or a public address is accepted`, async () => {
    // The empty file name makes each request invalid, so that the service calls none of these addresses.
    for (const url of [...goodUrls, ...publicHosts.map((host) => `http://${host}/`)]) {
      const answer = await subject.sendFields({ [field]: url, file_name: '' })
      await subject.assertInvalid(answer, ['file_name'], url)
    }
  })

  if (subject.operation.does === 'url') {
    test(`422: a ${field} that is no string is refused`, async () => {
      for (const value of [1, true, {}, [], ['http://example.com/'], 'http://a.com/\ud800', 'http://a.com/\r\nX: y']) {
        await subject.assertInvalid(await sendUrl(value), [field], JSON.stringify(value))
      }
    })
  }
}

/** On a synchronous operation `callback_url` is an unknown field like any other. */
export function testCallbackIgnored(subject: Subject) {
  test('a synchronous scan ignores callback_url, whatever it holds', async () => {
    for (const url of ['', 'not a url', 'http://127.0.0.1/', 'http://example.com/']) {
      await subject.assertAccepted(await subject.sendFields({ callback_url: url }), url)
    }
  })
}

function toWords(text: string): string[] {
  return text.split(/\s+/)
}

function toLength(length: number): string {
  return 'https://example.com/'.padEnd(length, 'a')
}
