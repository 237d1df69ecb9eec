export type PoolOptions = {
  /** Names the processes in errors and log lines. */
  name: string
  /** Processes that keep running without work. */
  minProcesses: number
  /** Processes that work at once; each does one thing at a time. */
  maxProcesses: number
  /** A process without work for this long ends, down to `minProcesses`. */
  idleMs: number
  /** Processes that are kept without work; by default as many as work at once. Nested work uses more than those. */
  maxIdle?: number
  /** Work of callers that may wait for a process, and for how long. Background jobs wait for as long as it takes. */
  maxWaiting: number
  waitMs: number
  /** Processes that jobs leave free for callers, and for how long after the last caller; see `makeSemaphore`. */
  reserved: number
  reservedForMs?: number
}

/** Processes that hold much memory are reserved only while callers come: without them, jobs use all. */
const reservedForMs = 60_000

/** A process that uses no processor time for this long while its answer is awaited is killed. */
export const stallMs = 15_000

/**
 * The processes of each engine and the limits on one piece of work. Tests and the operator's settings override them.
 */
export const engineOptions = {
  /** The number of processes is a setting. One stays open, so that the first picture does not wait for the models. */
  images: {
    name: 'image process',
    minProcesses: 1,
    idleMs: 60_000,
    maxWaiting: 200,
    waitMs: 30_000,
    reserved: 1,
    reservedForMs,
    stallMs,
    startMs: 30_000,
    sendMs: 30_000,
    /**
     * Processor time after which a process classifies no further frame of a picture. In `thorough`, each takes both
     * models.
     */
    budgetMs: { fast: 4_000, balanced: 4_000, thorough: 8_000 },
    /** Processor time for one picture; a process that uses more is killed. */
    maxProcessorMs: 10_000,
    /** Elapsed time for one picture, after its bytes are sent. A machine that takes longer is too busy. */
    answerMs: 60_000,
    /** Resident memory; a process that holds more is killed. */
    maxMemoryMb: 640,
  },
  /** Replaces some of the options above when a model of the operator is used. The memory is a setting. */
  ownModels: {
    startMs: 180_000,
    /** Processor time to open the models and to run each of them on three pictures. */
    openProcessorMs: 60_000,
    budgetMs: { fast: 20_000, balanced: 20_000, thorough: 20_000 },
    maxProcessorMs: 40_000,
    answerMs: 120_000,
  },
  /** All processes stay open: starting one means compiling the rules. */
  yara: {
    name: 'YARA process',
    processes: 2,
    idleMs: Infinity,
    maxWaiting: 1000,
    waitMs: 30_000,
    reserved: 1,
    reservedForMs,
    stallMs,
    compileMs: 120_000,
    sendMs: 30_000,
    /** Processor time for one scan, beside the time that its size adds. */
    scanMs: 30_000,
  },
  /** Containers are rare, and a process starts in 200 ms: none is kept. The clock of the scan bounds wait and work. */
  unpacker: {
    name: 'unpacking process',
    minProcesses: 0,
    /** Two for background jobs, and one more for callers. */
    maxProcesses: 3,
    reserved: 1,
    stallMs,
    /** Each level of a container in a container takes one more. */
    maxIdle: 6,
    idleMs: 30_000,
    maxWaiting: 1000,
    waitMs: Infinity,
  },
}
