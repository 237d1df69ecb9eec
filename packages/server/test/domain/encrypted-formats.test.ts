import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isEncrypted } from '../../src/domain/content/container.ts'

const latin1 = (text: string) => Buffer.from(text, 'latin1')

/** A header of ARJ with 34 bytes: of the archive with the type 2, of a member with another one. */
function newArjHeader({ flags = 0, type = 0, packedBytes = 0 }): Buffer {
  const header = Buffer.alloc(34 + 10)
  header.writeUInt16LE(0xea60, 0)
  header.writeUInt16LE(34, 2)
  header.set([30, 11, 1, 2, flags, 1, type], 4)
  header.writeUInt32LE(packedBytes, 16)
  return header
}

describe('encrypted formats are told from the head', () => {
  const toGo = Buffer.alloc(512)
  toGo.set(latin1('\xeb\x58\x90MSWIN4.1'))
  toGo.set(Buffer.from('3bd66749292ed84a8399f6a339e3d001', 'hex'), 424)
  const forms: Record<string, Buffer> = {
    'openssl enc': latin1('Salted__12345678'),
    'openssl enc in base64': latin1('U2FsdGVkX1+abc'),
    age: latin1('age-encryption.org/v1\n-> X25519'),
    'age with armour': latin1('-----BEGIN AGE ENCRYPTED FILE-----\nYWdl'),
    'ansible-vault': latin1('$ANSIBLE_VAULT;1.1;AES256\n6162'),
    'LUKS 1': latin1('LUKS\xba\xbe\x00\x01'),
    'LUKS 2': latin1('LUKS\xba\xbe\x00\x02'),
    'LUKS 2 by its second header': Buffer.concat([Buffer.alloc(0x4000), latin1('SKUL\xba\xbe')]),
    'a disk of QEMU with LUKS': Buffer.concat([
      latin1('QFI\xfb\0\0\0\x03'),
      Buffer.alloc(24),
      Buffer.from([0, 0, 0, 2]),
      Buffer.alloc(68),
    ]),
    Vim: latin1('VimCrypt~03!abc'),
    scrypt: latin1('scrypt\x00\x0e'),
    'backup of Android': latin1('ANDROID BACKUP\n5\n1\nAES-256\n'),
    BitLocker: latin1('\xeb\x58\x90-FVE-FS-\x00'),
    'BitLocker To Go': toGo,
    'KeePass 1': latin1('\x03\xd9\xa2\x9a\x65\xfb\x4b\xb5'),
    'KeePass 2': latin1('\x03\xd9\xa2\x9a\x67\xfb\x4b\xb5'),
    AxCrypt: Buffer.from('c0b9072e4f93f146a015792ca1d9e82115000000', 'hex'),
    'AES Crypt': latin1('AES\x02\x00\x00\x18CREATED_BY\x00aescrypt 3.1\x00'),
    'ARJ with garbled archive': newArjHeader({ flags: 1, type: 2 }),
    'ARJ with a garbled member': Buffer.concat([
      newArjHeader({ type: 2 }),
      newArjHeader({ packedBytes: 4 }),
      Buffer.alloc(4),
      newArjHeader({ flags: 1 }),
    ]),
  }
  for (const [name, head] of Object.entries(forms)) test(name, () => assert.ok(isEncrypted(head)))
})

test('other content is not called encrypted', () => {
  const others = [
    '',
    'AES is a cipher',
    'AES',
    'Salted peanuts',
    'ANDROID BACKUP\n5\n1\nnone\n',
    'LUKS',
    'U2',
    '\x60\xea',
    '\xeb\x58\x90MSWIN4.1',
  ]
  for (const text of others) assert.ok(!isEncrypted(latin1(text)), text)
  assert.ok(!isEncrypted(Buffer.concat([newArjHeader({ type: 2 }), newArjHeader({ packedBytes: 4 })])))
})
