import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { blobsPlace } from '../../src/config/blobs-reader.ts'

const place = { at: 's3', bucket: 'bucket', prefix: '', endpoint: undefined, region: 'eu-west-1', pathStyle: false }
const store = { ...place, endpoint: 'https://s3.example.com:9000', pathStyle: true }

describe('where content lies', () => {
  const good: Record<string, unknown> = {
    disk: { at: 'disk' },
    's3://bucket?region=eu-west-1': place,
    's3://bucket/?region=eu-west-1': place,
    's3://bucket/a/b-2/c_d.e/?region=eu-west-1': { ...place, prefix: 'a/b-2/c_d.e/' },
    's3://my.bucket-1?region=eu-west-1&path_style=true': { ...place, bucket: 'my.bucket-1', pathStyle: true },
    's3://bucket?endpoint=https://s3.example.com:9000&region=eu-west-1': store,
    's3://bucket?region=eu-west-1&endpoint=https%3A%2F%2Fs3.example.com%3A9000%2F': store,
    's3://bucket?endpoint=https://s3.example.com:9000&region=eu-west-1&path_style=false': {
      ...store,
      pathStyle: false,
    },
    's3://bucket?endpoint=http://127.0.0.1:1&region=RegionOne': {
      ...{ ...store, endpoint: 'http://127.0.0.1:1', region: 'RegionOne' },
    },
  }
  for (const [text, value] of Object.entries(good)) {
    test(`is ${text}`, () => assert.deepEqual(blobsPlace(text), value))
  }

  const region = 'region=eu-west-1'
  const bad: [text: string, says: RegExp][] = [
    ...['', 'Disk', 's3', 's3:bucket', 'S3://bucket', 'https://bucket', '/var/blobs', `s3://bucket?${region}#x`].map(
      (text): [string, RegExp] => [text, /^must be disk, or an address such as s3:\/\/bucket\/prefix\?endpoint=/],
    ),
    ...['s3://', `s3:///prefix?${region}`, `s3://ab?${region}`, `s3://Bucket?${region}`, `s3://-bucket?${region}`].map(
      (text): [string, RegExp] => [text, /^must name a bucket of 3 to 63 lower-case letters/],
    ),
    [`s3://bu_cket?${region}`, /^must name a bucket/],
    [`s3://bucket:9000?${region}`, /^must name a bucket/],
    [`s3://key:secret@bucket?${region}`, /^must carry no credentials/],
    ...['a//b', '/a', 'a b', 'ä', 'a/../b', '.', 'a/%2e', 'a'.repeat(513)].map((prefix): [string, RegExp] => [
      `s3://bucket/${prefix}?${region}`,
      /^must have a prefix of letters/,
    ]),
    ['s3://bucket', /^must name a region/],
    ['s3://bucket?region=', /^must name a region/],
    ['s3://bucket?region=eu west', /^must name a region/],
    [`s3://bucket?${region}&${region}`, /^must have the parameter region once/],
    [`s3://bucket?${region}&sse=true`, /^must have no parameters but endpoint, region, path_style/],
    [`s3://bucket?${region}&path_style=yes`, /^must have path_style=true or path_style=false/],
    ...['s3.example.com', 'ftp://s3.example.com', 'https://s3.example.com/path', 'https://a:b@s3.example.com', ''].map(
      (endpoint): [string, RegExp] => [`s3://bucket?endpoint=${endpoint}&${region}`, /^must have an endpoint such as/],
    ),
  ]
  for (const [text, says] of bad) {
    test(`is not ${text.slice(0, 80)}`, () =>
      assert.throws(
        () => blobsPlace(text),
        ({ message }) => says.test(message),
      ))
  }
})
