import { crc32, deflateRawSync } from 'node:zlib'
import { plainText, u32 } from './bytes.ts'
import type { Form } from './form.ts'
import { toSamples } from './samples.ts'
import { newDescriptor, writeZip, type ZipMember } from './zip-writer.ts'

const zip = { family: 'zip', expectation: 'ambiguous', needs: [] } as const
const text: ZipMember = { name: 'readme.txt', data: plainText }

/** Zip files whose local headers and directory contradict each other. */
export const zipHeaderForms: Form[] = [
  {
    ...zip,
    name: 'zip whose local header lies about name or checksum',
    make: (payload, name) =>
      toSamples('zip', {
        name: writeZip([text, { name, data: payload, local: { name: 'picture.png' } }]),
        'directory-name': writeZip([text, { name, data: payload, local: { name: 'folder/' } }]),
        'central-directory-name': writeZip([text, { name, data: payload, central: { name: 'folder/' } }]),
        'central-empty-name': writeZip([text, { name, data: payload, central: { name: '' } }]),
        crc: writeZip([text, { name, data: payload, local: { crc: 1 } }]),
        'central-crc': writeZip([text, { name, data: payload, central: { crc: 1 } }]),
        'both-crc': writeZip([text, { name, data: payload, local: { crc: 1 }, central: { crc: 1 } }]),
      }),
  },
  {
    ...zip,
    name: 'zip whose local header lies about sizes',
    make(payload, name) {
      const stored: ZipMember = { name, data: payload, method: 0 }
      const deflated: ZipMember = { name, data: payload }
      const long = Buffer.concat([payload, Buffer.alloc(300, 'x')])
      const crc = crc32(payload)
      return toSamples('zip', {
        'local-size-of-zero': writeZip([text, { ...stored, local: { size: 0, packedSize: 0 } }]),
        'central-size-of-zero': writeZip([text, { ...stored, central: { size: 0, packedSize: 0 } }]),
        'local-longer': writeZip([
          { name, data: long, method: 0, central: { size: payload.length, packedSize: payload.length, crc } },
          text,
        ]),
        'central-longer': writeZip([
          { name, data: long, method: 0, local: { size: payload.length, packedSize: payload.length, crc } },
          text,
        ]),
        'deflated-local-size-of-zero': writeZip([text, { ...deflated, local: { size: 0, packedSize: 0 } }]),
        'deflated-central-size-of-zero': writeZip([text, { ...deflated, central: { size: 0, packedSize: 0 } }]),
        'deflated-local-size': writeZip([text, { ...deflated, local: { size: 10 } }]),
        'deflated-central-size': writeZip([text, { ...deflated, central: { size: 10 } }]),
        'deflated-both-sizes': writeZip([text, { ...deflated, local: { size: 10 }, central: { size: 10 } }]),
        'huge-size': writeZip([text, { ...deflated, local: { size: 0x7fff_ffff }, central: { size: 0x7fff_ffff } }]),
      })
    },
  },
  {
    ...zip,
    name: 'zip whose local header lies about method or flags',
    make(payload, name) {
      const stored: ZipMember = { name, data: payload, method: 0 }
      const deflated: ZipMember = { name, data: payload }
      return toSamples('zip', {
        'local-says-stored': writeZip([text, { ...deflated, local: { method: 0 } }]),
        'central-says-stored': writeZip([text, { ...deflated, central: { method: 0 } }]),
        'local-says-deflated': writeZip([text, { ...stored, local: { method: 8 } }]),
        'central-says-deflated': writeZip([text, { ...stored, central: { method: 8 } }]),
        'local-says-unknown': writeZip([text, { ...deflated, local: { method: 77 } }]),
        'central-says-unknown': writeZip([text, { ...deflated, central: { method: 77 } }]),
        'local-says-encrypted': writeZip([text, { ...deflated, local: { flags: 1 } }]),
        'central-says-encrypted': writeZip([text, { ...deflated, central: { flags: 1 } }]),
        'local-says-descriptor': writeZip([text, { ...deflated, local: { flags: 8 } }]),
        'central-says-patch': writeZip([text, { ...deflated, central: { flags: 32 } }]),
      })
    },
  },
  {
    ...zip,
    name: 'zip with a lying data descriptor',
    make(payload, name) {
      const packed = deflateRawSync(payload)
      const local = { flags: 8, crc: 0, packedSize: 0, size: 0 }
      const member: ZipMember = { name, data: payload, packed, local, central: { flags: 8 } }
      const build = (after: Buffer, change: Partial<ZipMember> = {}) =>
        writeZip([{ ...member, ...change, after }, text])
      const truth = newDescriptor(payload, packed.length)
      return toSamples('zip', {
        'wrong-crc': build(newDescriptor(plainText, packed.length)),
        'wrong-size': build(newDescriptor(payload, 5)),
        missing: build(Buffer.alloc(0)),
        'central-without-flag': build(truth, { central: { flags: 0 } }),
        'stored-with-descriptor': build(newDescriptor(payload, payload.length), { packed: payload, method: 0 }),
      })
    },
  },
  {
    ...zip,
    name: 'zip with a member that only local headers show',
    make(payload, name) {
      const hidden: ZipMember = { name, data: payload, only: 'local' }
      const stored: ZipMember = { ...hidden, method: 0 }
      const local = writeZip([hidden]).subarray(0, -22)
      return toSamples('zip', {
        first: writeZip([hidden, text]),
        between: writeZip([text, hidden, { name: 'b.txt', data: plainText }]),
        last: writeZip([text, hidden]),
        'stored-first': writeZip([stored, text]),
        'stored-between': writeZip([text, stored, { name: 'b.txt', data: plainText }]),
        'before-end-record': writeZip([text], { beforeEnd: local }),
        'behind-junk': writeZip([{ ...text, after: Buffer.alloc(64) }, hidden, { name: 'b.txt', data: plainText }]),
        'same-name': writeZip([{ ...hidden, name: text.name }, text]),
      })
    },
  },
  {
    ...zip,
    name: 'zip whose directory points elsewhere',
    make(payload, name) {
      const inner = writeZip([{ name, data: payload }])
      const shelf: ZipMember = { name: 'notes.bin', data: inner, method: 0 }
      const place = 30 + shelf.name.length
      const twoPlaces = writeZip([text]).length - 22 - 46 - text.name.length
      return toSamples('zip', {
        'into-a-stored-member': writeZip([shelf, { name, data: payload, central: { offset: place }, only: 'central' }]),
        'both-to-the-payload': writeZip([
          { ...text, central: { offset: twoPlaces } },
          { name, data: payload, only: 'local' },
        ]),
        'without-local-signature': writeZip([text, { name, data: payload, local: { signature: 0x0102_0304 } }]),
        'entry-without-signature': writeZip([text, { name, data: payload, central: { signature: 0x0102_0304 } }]),
      })
    },
  },
  {
    ...zip,
    name: 'zip with several members of one name',
    expectation: 'opened',
    make: (payload, name) =>
      toSamples('zip', {
        'payload-first': writeZip([
          { name, data: payload },
          { name, data: plainText },
        ]),
        'payload-last': writeZip([
          { name, data: plainText },
          { name, data: payload },
        ]),
        'other-case': writeZip([
          { name: 'a.txt', data: plainText },
          { name: 'A.TXT', data: payload },
        ]),
        'file-and-directory': writeZip([
          { name: 'a/', data: Buffer.alloc(0), method: 0 },
          { name: 'a', data: payload },
        ]),
      }),
  },
  {
    ...zip,
    name: 'zip with data on a directory or a link',
    make: (payload) =>
      toSamples('zip', {
        directory: writeZip([text, { name: 'folder/', data: payload }]),
        'directory-attribute': writeZip([text, { name: 'folder', data: payload, central: { attributes: 16 } }]),
        link: writeZip([text, { name: 'link', data: payload, central: { attributes: 0o120777 * 65536 } }]),
        device: writeZip([text, { name: 'device', data: payload, central: { attributes: 0o060644 * 65536 } }]),
      }),
  },
  {
    ...zip,
    name: 'zip with a record that no member owns',
    make(payload, name) {
      const inner = writeZip([{ name, data: payload }])
      const record = (signature: number) => Buffer.concat([u32(signature), u32(inner.length), inner])
      return toSamples('zip', {
        'archive-extra-data': writeZip([text], { beforeDirectory: record(0x0806_4b50) }),
        'digital-signature': writeZip([text], { beforeEnd: record(0x0505_4b50) }),
        'gap-before-directory': writeZip([text], { beforeDirectory: inner }),
        'gap-between-members': writeZip([
          { ...text, after: inner },
          { name: 'b.txt', data: plainText },
        ]),
      })
    },
  },
]
