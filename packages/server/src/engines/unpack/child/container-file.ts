import type { ServicePipe } from './service-pipe.ts'

const blockBytes = 2 ** 20
const maxBlocks = 16

/**
 * The container as a file that is fetched where it is read: of 250 MB never more than 16 are here. Most containers are
 * smaller than one block and come in one piece.
 */
export function makeContainerFile(bytes: number, service: ServicePipe) {
  /** In order of use, the longest unused first. */
  const blocks = new Map<number, Buffer>()

  function getBlock(index: number): Buffer {
    let block = blocks.get(index)
    if (block === undefined) {
      block = service.read(index * blockBytes, Math.min(blockBytes, bytes - index * blockBytes))
      const [oldest] = blocks.keys()
      if (blocks.size >= maxBlocks && oldest !== undefined) blocks.delete(oldest)
    } else {
      blocks.delete(index)
    }
    blocks.set(index, block)
    return block
  }

  return {
    bytes,
    /** As many as there are in one block; the caller asks again for more. */
    readInto(target: Uint8Array, offset: number, length: number, position: number): number {
      if (position >= bytes || length === 0) return 0
      const block = getBlock(Math.floor(position / blockBytes))
      const at = position % blockBytes
      const count = Math.min(length, block.length - at)
      target.set(block.subarray(at, at + count), offset)
      return count
    },
  }
}

export type ContainerFile = ReturnType<typeof makeContainerFile>
