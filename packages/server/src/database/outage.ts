/** What was asked may have been committed, or not. */
export class FateUnknown extends Error {}

/** The database is away, lost, full or too slow: not the fault of a statement or of its values. */
export function isOutage(error: unknown): boolean {
  if (error instanceof FateUnknown) return true
  const { code, message, syscall, errors } = error as { [name: string]: unknown }
  if (code === undefined) return driverWords.test(String(message))
  if (serverCodes.test(String(code))) return true
  // Of a socket, that is: the same codes are known to files. A name with several addresses has an error for each.
  return networkCodes.test(String(code)) && (Array.isArray(errors) || socketCalls.test(String(syscall)))
}

/** Of those, the one that more room would mend. */
export const isDiskFull = (error: unknown): boolean => (error as { code?: unknown }).code === '53100'

/**
 * Whether a commit that failed like this may have happened all the same. One that the server has refused did not. A
 * connection that broke tells nothing, and neither does a server that is being stopped: it may wait for others with the
 * commit already written.
 */
export const isFateUnknown = (error: unknown): boolean =>
  isOutage(error) && !/^(53|57014|57P03|58|25)/.test(String((error as { code?: unknown }).code))

/**
 * Connections (class 08), resources (53), a server that is stopped, starting, or tired of the statement (57), input and
 * output of the server (58), one that only reads since a failover (25006).
 */
const serverCodes = /^(08...|53...|57014|57P0[1-4]|58...|25006)$/

/** A process without file descriptors cannot connect either. */
const networkCodes =
  /^E(CONN\w+|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|HOSTDOWN|NOTFOUND|AI_AGAIN|NOENT|MFILE|NFILE|ADDRNOTAVAIL|NOTCONN)$/
const socketCalls = /^(connect|socket|getaddrinfo|read|write)$/

/** What the driver says without a code. */
const driverWords =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after)/
