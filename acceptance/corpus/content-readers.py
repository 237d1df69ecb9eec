"""Unpacks mail and documents with Python, each reader into a directory that has its name."""
import base64
import email
import mailbox
import os
import re
import struct
import sys
from email import policy

PATH = sys.argv[1]
with open(PATH, 'rb') as source:
    DATA = source.read()


def attempt(reader, read):
    number = 0
    try:
        for content in read():
            if content:
                os.makedirs(reader, exist_ok=True)
                with open(os.path.join(reader, str(number)), 'wb') as target:
                    target.write(content)
                number += 1
    except Exception:
        pass


def read_parts(mail):
    for part in mail.walk():
        try:
            if not part.is_multipart():
                yield part.get_payload(decode=True)
        except Exception:
            pass


def read_mailbox():
    for mail in mailbox.mbox(PATH, create=False):
        yield from read_parts(mail)


def read_rtf():
    for match in re.finditer(rb'\\objdata([0-9A-Fa-f\s]+)', DATA):
        content = bytes.fromhex(match.group(1).decode())
        # The header has a version, a format and three texts with lengths; then follow the length and the data.
        position = 8
        for _ in range(3):
            position += 4 + struct.unpack_from('<I', content, position)[0]
        size = struct.unpack_from('<I', content, position)[0]
        yield from read_package(content[position + 4:position + 4 + size])


def read_package(content):
    yield content
    start = content.find(b'\x02\x00')
    position = start + 2
    for _ in range(2):
        position = content.index(b'\0', position) + 1
    position += 4
    position += 4 + struct.unpack_from('<I', content, position)[0]
    size = struct.unpack_from('<I', content, position)[0]
    yield content[position + 4:position + 4 + size]


def read_ole():
    import olefile
    with olefile.OleFileIO(DATA) as document:
        for path in document.listdir():
            content = document.openstream(path).read()
            yield content
            if path[-1].endswith('Ole10Native'):
                yield from read_package(content)


def read_base64():
    for match in re.finditer(rb'[A-Za-z0-9+/\s]{40,}={0,2}', DATA):
        try:
            yield base64.b64decode(match.group(0))
        except Exception:
            pass


# The library takes nearly everything for mail, so a header of mail must be there.
if re.search(rb'(?im)^(content-type|content-transfer-encoding|begin )', DATA.replace(b'\r', b'\n')):
    attempt('email', lambda: read_parts(email.message_from_bytes(DATA)))
    attempt('email-strict', lambda: read_parts(email.message_from_bytes(DATA, policy=policy.default)))
    attempt('mailbox', read_mailbox)
if DATA.lstrip()[:4] == b'{\\rt':
    attempt('rtf', read_rtf)
if DATA[:4] == b'\xd0\xcf\x11\xe0':
    attempt('olefile', read_ole)
if re.match(rb'\s*(<|\xef\xbb\xbf<)', DATA):
    attempt('base64-in-markup', read_base64)
