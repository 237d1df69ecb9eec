export type JpegScans = {
  scans: number
  /** Memory that a decoder holds until the last of several scans; 0 when it gives rows as it reads them. */
  heldBytes: number
}

/**
 * Counts the scans of a JPEG by its markers, without decoding. A progressive JPEG of 240 KB may hold 2,000 scans, each of
 * which visits the whole picture: decoding took 34 s, and libvips has no timeout for it.
 */
export function readJpegScans(bytes: Buffer): JpegScans {
  let scans = 0
  let coefficients = 0
  let isProgressive = false
  let at = 2
  while (at < bytes.length) {
    at = bytes.indexOf(0xff, at)
    if (at < 0) break
    while (bytes[at] === 0xff) at++
    const marker = bytes[at++] ?? endOfImage
    if (marker === endOfImage) break
    if (marker === 0 || marker === 1 || (marker >= 0xd0 && marker <= 0xd8)) continue
    if (at + 2 > bytes.length) break
    const length = bytes.readUInt16BE(at)
    if (isFrameHeader(marker)) {
      isProgressive = marker === 0xc2 || marker === 0xca
      coefficients = countCoefficients(bytes.subarray(at, at + length))
    }
    if (marker === startOfScan) scans++
    at += Math.max(length, 2)
  }
  return { scans, heldBytes: isProgressive || scans > 1 ? coefficients * 2 : 0 }
}

const endOfImage = 0xd9
const startOfScan = 0xda

const isFrameHeader = (marker: number) =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

function countCoefficients(header: Buffer): number {
  if (header.length < 8) return 0
  const pixels = header.readUInt16BE(3) * header.readUInt16BE(5)
  const samplings: [across: number, down: number][] = []
  for (let i = 0; i < (header[7] ?? 0); i++) {
    const sampling = header[8 + i * 3 + 1] ?? 0x11
    samplings.push([sampling >> 4, sampling & 15])
  }
  const most = Math.max(1, ...samplings.map(([across]) => across)) * Math.max(1, ...samplings.map(([, down]) => down))
  return samplings.reduce((sum, [across, down]) => sum + (pixels * across * down) / most, 0)
}
