import { crc32, deflateRawSync } from 'node:zlib'
import { longText, plainText, u16, u32, u64 } from './bytes.ts'
import type { Form } from './form.ts'
import { toSamples } from './samples.ts'
import { newDescriptor, newExtra, writeZip, type ZipMember } from './zip-writer.ts'

const zip = { family: 'zip', expectation: 'ambiguous', needs: [] } as const
const text: ZipMember = { name: 'readme.txt', data: plainText }

/** A zip that is moved by `base` bytes, with offsets that say so. */
const moved = (members: ZipMember[], base: number) => writeZip(members, { base })

/** Zip files that one program reads by one end record and another program by another. */
export const zipReadingForms: Form[] = [
  {
    ...zip,
    name: 'zips one after the other',
    make(payload, name) {
      const hidden: ZipMember[] = [{ name, data: payload }]
      const plain = writeZip([text])
      const bad = writeZip(hidden)
      return toSamples('zip', {
        'payload-last': Buffer.concat([plain, bad]),
        'payload-first': Buffer.concat([bad, plain]),
        'payload-last-moved': Buffer.concat([plain, moved(hidden, plain.length)]),
        'payload-first-moved': Buffer.concat([bad, moved([text], bad.length)]),
        'payload-between': Buffer.concat([plain, bad, plain]),
        'payload-first-and-zeros': Buffer.concat([bad, Buffer.alloc(512), plain]),
        'payload-last-far': Buffer.concat([plain, longText, bad]),
        'payload-first-far': Buffer.concat([bad, longText, plain]),
        'same-names': Buffer.concat([writeZip([{ name: text.name, data: payload }]), plain]),
        'empty-last': Buffer.concat([bad, writeZip([])]),
        'empty-first': Buffer.concat([writeZip([]), bad]),
      })
    },
  },
  {
    ...zip,
    name: 'zip in the comment of a zip',
    make(payload, name) {
      const hidden: ZipMember[] = [{ name, data: payload }]
      const length = writeZip([text]).length
      return toSamples('zip', {
        'payload-in-comment': writeZip([text], { comment: writeZip(hidden) }),
        'payload-in-comment-moved': writeZip([text], { comment: moved(hidden, length) }),
        'payload-outside': writeZip(hidden, { comment: writeZip([text]) }),
        'payload-outside-moved': writeZip(hidden, { comment: moved([text], writeZip(hidden).length) }),
        'payload-in-middle-of-comment': writeZip([text], {
          comment: Buffer.concat([plainText, writeZip(hidden), plainText]),
        }),
        'empty-zip-with-comment': writeZip([], { comment: writeZip(hidden) }),
      })
    },
  },
  {
    ...zip,
    name: 'zip in an extra field',
    make(payload, name) {
      const inner = newExtra(writeZip([{ name, data: payload }]))
      const member = newExtra(
        writeZip([{ name, data: payload, method: 0 }]).subarray(0, 30 + name.length + payload.length),
      )
      return toSamples('zip', {
        local: writeZip([{ ...text, local: { extra: inner } }]),
        central: writeZip([{ ...text, central: { extra: inner } }]),
        'member-in-local': writeZip([{ ...text, local: { extra: member } }]),
      })
    },
  },
  {
    ...zip,
    name: 'zip with a second end record',
    make(payload, name) {
      const hidden: ZipMember[] = [{ name, data: payload }]
      const plain = writeZip([text])
      const empty = Buffer.concat([u32(0x0605_4b50), Buffer.alloc(18)])
      const whole = writeZip([text, ...hidden])
      const onlyText = writeZip([text, { name, data: payload, only: 'local' }])
      // Both directories belong to the same members; the first or the last one leaves the payload out.
      const listing = (place: number) =>
        writeZip([{ ...text, central: { offset: 0 }, only: 'central' }], { base: place })
      return toSamples('zip', {
        'empty-record-last': Buffer.concat([whole, empty]),
        'empty-record-in-comment': writeZip([text, ...hidden], { comment: empty }),
        'shorter-directory-last': Buffer.concat([whole, listing(whole.length)]),
        'record-before-directory': writeZip([text, ...hidden], { beforeDirectory: plain.subarray(-22) }),
        'longer-directory-last': Buffer.concat([
          onlyText,
          moved([{ ...text, central: { offset: 0 }, only: 'central' }, ...hidden], onlyText.length),
        ]),
      })
    },
  },
  {
    ...zip,
    name: 'zip with a directory behind the locator of zip64',
    make(payload, name) {
      const hidden: ZipMember[] = [{ name, data: payload, only: 'local' }]
      const locals = writeZip([text, ...hidden])
      const start = locals.length - 22 - (46 + text.name.length)
      const members = locals.subarray(0, start)
      const toEntry = (zipFile: Buffer) => zipFile.subarray(-22 - 46 - text.name.length, -22)
      const plainEntry = toEntry(writeZip([text]))
      const textPlace = members.indexOf(Buffer.from(name)) - 30
      const badEntry = writeZip([{ name, data: payload, central: { offset: textPlace }, only: 'central' }]).subarray(
        0,
        -22,
      )
      const wide = (directory: number, size: number) =>
        Buffer.concat([
          u32(0x0606_4b50),
          u64(44),
          u16(45),
          u16(45),
          u32(0),
          u32(0),
          u64(1),
          u64(1),
          u64(size),
          u64(directory),
        ])
      const locate = (place: number) => Buffer.concat([u32(0x0706_4b50), u32(0), u64(place), u32(1)])
      const end = (directory: number, size: number) =>
        Buffer.concat([u32(0x0605_4b50), u32(0), u16(1), u16(1), u32(size), u32(directory), u16(0)])
      const build = (first: Buffer, second: Buffer) => {
        const recordPlace = start + first.length + second.length
        const record = wide(start, first.length)
        return Buffer.concat([
          members,
          first,
          second,
          record,
          locate(recordPlace),
          end(start + first.length, second.length),
        ])
      }
      return toSamples('zip', {
        'payload-in-zip64': build(badEntry, plainEntry),
        'payload-in-zip32': build(plainEntry, badEntry),
      })
    },
  },
  {
    ...zip,
    name: 'zip with bytes before it',
    expectation: 'opened',
    make(payload, name) {
      const hidden: ZipMember[] = [text, { name, data: payload }]
      const junk = { byte: Buffer.from('x'), line: plainText, 'long-text': longText, zeros: Buffer.alloc(70_000) }
      return toSamples(
        'zip',
        Object.fromEntries(
          Object.entries(junk).flatMap(([kind, bytes]) => [
            [kind, Buffer.concat([bytes, writeZip(hidden)])],
            [`${kind}-moved`, Buffer.concat([bytes, moved(hidden, bytes.length)])],
          ]),
        ),
      )
    },
  },
  {
    ...zip,
    name: 'zip with bytes after it',
    make(payload, name) {
      const bad = writeZip([text, { name, data: payload }])
      return toSamples('zip', {
        byte: Buffer.concat([bad, Buffer.from('x')]),
        'line-end': Buffer.concat([bad, Buffer.from('\r\n')]),
        zeros: Buffer.concat([bad, Buffer.alloc(5_000)]),
        'long-text': Buffer.concat([bad, longText]),
        'half-a-zip': Buffer.concat([bad, bad.subarray(0, 40)]),
      })
    },
  },
  {
    ...zip,
    name: 'zip with a wrong comment length',
    make: (payload, name) =>
      toSamples('zip', {
        'too-long': writeZip([text, { name, data: payload }], { commentLength: 100 }),
        'too-short': writeZip([text, { name, data: payload }], { comment: plainText, commentLength: 3 }),
        zero: writeZip([text, { name, data: payload }], { comment: longText.subarray(0, 60_000), commentLength: 0 }),
        largest: writeZip([text, { name, data: payload }], { commentLength: 0xffff }),
      }),
  },
  {
    ...zip,
    name: 'zip that looks empty',
    make: (payload, name) =>
      toSamples('zip', {
        'no-entry': writeZip([{ name, data: payload, only: 'local' }]),
        'no-entry-stored': writeZip([{ name, data: payload, method: 0, only: 'local' }]),
        'count-of-zero': writeZip([{ name, data: payload }], { count: 0 }),
        'count-and-size-of-zero': writeZip([{ name, data: payload }], { count: 0, directorySize: 0 }),
        'count-of-one': writeZip([text, { name, data: payload }], { count: 1 }),
      }),
  },
  {
    ...zip,
    name: 'zip without an end record',
    make(payload, name) {
      const whole = writeZip([text, { name, data: payload }])
      const packed = deflateRawSync(payload)
      const described: ZipMember = {
        name,
        data: payload,
        packed,
        local: { flags: 8, crc: 0, packedSize: 0, size: 0 },
        central: { flags: 8, crc: crc32(payload) },
        after: newDescriptor(payload, packed.length),
      }
      return toSamples('zip', {
        'without-end': whole.subarray(0, -22),
        'without-directory': whole.subarray(0, whole.indexOf(u32(0x0201_4b50))),
        'half-an-end': whole.subarray(0, -5),
        'descriptor-without-directory': writeZip([described]).subarray(0, -22 - 46 - name.length),
      }).map((sample) => ({ ...sample, expectation: 'damaged' as const }))
    },
  },
]
