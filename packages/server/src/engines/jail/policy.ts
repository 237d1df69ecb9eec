import { dirname, join } from 'node:path'
import type { AllowedCalls } from './filter.ts'

/** What a parser may reach. Everything else is refused by the kernel. */
export type Policy = AllowedCalls & {
  /** The only program that it may execute. */
  program: string
  /** Files, and directories with everything below, that it may read. */
  reads: string[]
  /** Directories in which it may also create, write and remove files and sockets. */
  writes: string[]
  /** TCP ports that it may connect to. */
  ports: number[]
  limits: {
    /** Memory that it may write to, without what it only reserves. */
    dataMb: number
    openFiles: number
    /** Size of one file that it writes. */
    fileMb: number
    /** Over the whole life of the process; for processes that end by themselves. */
    processorSeconds?: number
  }
}

/** A kind of process that has a policy; labels of a metric and log lines name it so. */
type Parser = keyof typeof policies

/** Libraries and facts about the machine that programs read when they start. */
const systemReads = [
  '/lib',
  '/lib64',
  '/usr/lib',
  '/usr/lib64',
  '/usr/local/lib',
  '/nix/store',
  '/etc/ld.so.cache',
  '/etc/ssl/openssl.cnf',
  '/etc/localtime',
  '/usr/share/zoneinfo',
  '/dev/null',
  '/dev/urandom',
  // The launcher keeps its process id when it becomes the parser, so this is the parser's own directory.
  '/proc/self',
  '/proc/cpuinfo',
  '/proc/meminfo',
  '/sys/devices/system/cpu',
]

/** Files that freshclam reads to find its user and to check certificates. Its proxy resolves names. */
const networkReads = [
  '/etc/passwd',
  '/etc/group',
  '/etc/ssl',
  '/etc/pki',
  '/etc/ca-certificates',
  '/usr/share/ca-certificates',
  '/usr/local/share/ca-certificates',
]

const nothing: Pick<Policy, 'writes' | 'ports' | keyof AllowedCalls> = {
  writes: [],
  ports: [],
  sockets: 'none',
  modeChanges: 'refused',
  newProcesses: 'fatal',
}

type NodeProgram = { node: string; reads: string[] }

/**
 * One row for each kind of process that parses what strangers, mirrors or operators provide. Readable paths that depend
 * on the installation come from the caller.
 */
export const policies = {
  /** Readers and 7-Zip. 7-Zip's WebAssembly may take 640 MB, the heap 128 MB. */
  unpacker: ({ node, reads }: NodeProgram): Policy => ({
    ...nothing,
    program: node,
    reads: [...systemReads, ...reads],
    limits: { dataMb: 2560, openFiles: 128, fileMb: 0 },
  }),
  /** Compiles rules and scans. Content of up to 1 GB lies in memory as a whole. */
  yara: ({ node, reads }: NodeProgram): Policy => ({
    ...nothing,
    program: node,
    reads: [...systemReads, ...reads],
    limits: { dataMb: 4096, openFiles: 128, fileMb: 0 },
  }),
  images: ({ node, reads, dataMb }: NodeProgram & { dataMb: number }): Policy => ({
    ...nothing,
    program: node,
    reads: [...systemReads, ...reads],
    limits: { dataMb, openFiles: 128, fileMb: 0 },
  }),
  /** Converts a model of a package to its standard output, which is a file. */
  modelConversion: ({ node, reads }: NodeProgram): Policy => ({
    ...nothing,
    program: node,
    reads: [...systemReads, ...reads],
    limits: { dataMb: 4096, openFiles: 128, fileMb: 512, processorSeconds: 300 },
  }),
  /** Scans, and loads new signatures on trial. During a reload it holds two databases of about 1.5 GB. */
  clamd: (paths: { binary: string; reads: string[]; writes: string[]; scratchMb: number }): Policy => ({
    ...nothing,
    program: paths.binary,
    reads: [...systemReads, ...listOwnReads(paths.binary), ...paths.reads],
    writes: paths.writes,
    sockets: 'listen',
    // clamd ends when it cannot set the mode of its socket.
    modeChanges: 'ignored',
    limits: { dataMb: 9216, openFiles: 4096, fileMb: paths.scratchMb },
  }),
  /** Downloads signatures, and loads them on trial. */
  freshclam: (paths: { binary: string; reads: string[]; writes: string[]; ports: number[] }): Policy => ({
    ...nothing,
    program: paths.binary,
    reads: [...systemReads, ...networkReads, ...listOwnReads(paths.binary), ...paths.reads],
    writes: paths.writes,
    ports: paths.ports,
    sockets: 'connect',
    modeChanges: 'ignored',
    // freshclam forks to test a database, and tests it in its own process when it cannot.
    newProcesses: 'refused',
    limits: { dataMb: 4096, openFiles: 256, fileMb: 2048, processorSeconds: 1800 },
  }),
  /** A program of the operator, which gets one file. Its libraries and data lie in the directories that they list. */
  command: (options: {
    program: string
    reads: string[]
    writes: string[]
    memoryMb: number
    scratchMb: number
    processorSeconds: number
  }): Policy => ({
    ...nothing,
    program: options.program,
    reads: [...systemReads, ...options.reads],
    writes: options.writes,
    // Programs that set the mode of their temporary files give up when they cannot.
    modeChanges: 'ignored',
    // Programs look for helpers by starting them, and go on without.
    newProcesses: 'refused',
    limits: {
      dataMb: options.memoryMb,
      openFiles: 1024,
      fileMb: options.scratchMb,
      processorSeconds: options.processorSeconds,
    },
  }),
}

/** Libraries of a ClamAV outside of the system's directories, its certificates, and the library of `stdbuf`. */
const listOwnReads = (binary: string) => [
  join(dirname(binary), '..', 'lib'),
  join(dirname(binary), '..', 'lib64'),
  '/etc/clamav/certs',
  '/usr/libexec/coreutils',
]

/** Called for each parser that the kernel killed because of a call that no honest parser makes. */
export type OnEscape = (parser: Parser) => void

/** The signal by which the filter kills a process. */
export const isEscape = (signal: NodeJS.Signals | string | null | undefined) => signal === 'SIGSYS'
