/**
 * What the unpacking process says. Every frame is one byte of kind, four of length, and as many bytes. The service
 * answers a `read` with exactly the bytes asked for, and begins a job with a `Job` as JSON after its length.
 */
export const frameKinds = { open: 1, data: 2, close: 3, read: 4, end: 5 } as const

export const frameHeadBytes = 5

/** The process's ends of its two pipes. */
export const jobPipe = 3
export const memberPipe = 4

export type Job = {
  bytes: number
  /** What 7-Zip calls the format; it tells by itself when there is none. */
  type: string | undefined
  /** The name of what a compressed file holds, which has none of its own. */
  name: string
}

export type JobEnd = {
  /** 7-Zip's exit code; -1 when it broke off. */
  code: number
  /** What it complained of, cut to a bounded length. */
  complaints: string[]
  /** Complaints about what has no bytes: links and attributes. */
  ignored: number
  /** Given to the service. */
  members: number
  /** What follows the container in the same file, by 7-Zip's measure. */
  tailBytes: number
  /** A member was not written from front to back, so what was sent is not what it is. */
  rewritten: boolean
  /** Of the process, after the job. */
  residentBytes: number
}

export const maxPathBytes = 4096
export const maxFrameBytes = 4 * 2 ** 20
