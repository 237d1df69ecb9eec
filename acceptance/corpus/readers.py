"""Unpacks a file with each reader of Python's library, each into a directory that has the name of the reader."""
import bz2
import gzip
import io
import lzma
import os
import sys
import tarfile
import zipfile
import zlib

LIMIT = 1 << 25
with open(sys.argv[1], 'rb') as source:
    DATA = source.read()


def write(reader, number, content):
    os.makedirs(reader, exist_ok=True)
    with open(os.path.join(reader, str(number)), 'wb') as target:
        target.write(content)


def attempt(reader, read):
    number = 0
    try:
        for content in read():
            write(reader, number, content)
            number += 1
    except Exception:
        pass


def read_zip():
    archive = zipfile.ZipFile(io.BytesIO(DATA))
    for member in archive.infolist():
        try:
            yield archive.open(member).read(LIMIT)
        except Exception:
            pass


def read_tar():
    archive = tarfile.open(fileobj=io.BytesIO(DATA), mode='r:*')
    for member in archive:
        content = archive.extractfile(member)
        if content is not None:
            yield content.read(LIMIT)


def read_stream(reader):
    yield reader.open(io.BytesIO(DATA)).read(LIMIT)


attempt('zipfile', read_zip)
attempt('tarfile', read_tar)
for module in (gzip, bz2, lzma):
    attempt(module.__name__, lambda module=module: read_stream(module))
attempt('zlib', lambda: [zlib.decompressobj().decompress(DATA, LIMIT)])
