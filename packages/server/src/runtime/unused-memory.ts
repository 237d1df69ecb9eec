import koffi from 'koffi'

const trim = koffi.load(null).func('int malloc_trim(size_t bytesToKeep)')

/** Returns memory to the system that glibc keeps for later allocations. Takes a few milliseconds. */
export const returnUnusedMemory = (): void => void trim(0)
