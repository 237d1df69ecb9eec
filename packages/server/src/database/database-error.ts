/** Thrown when a commit was sent and not answered: the transaction may or may not have been committed. */
export class CommitUnknown extends Error {}

/** Whether the database is unreachable, full or too slow, rather than a statement or its values being wrong. */
export function isOutage(error: unknown): boolean {
  if (error instanceof CommitUnknown) return true
  const { code, message, syscall, errors } = error as { [name: string]: unknown }
  if (code === undefined) return driverMessages.test(String(message))
  if (serverCodes.test(String(code))) return true
  // Files have errors with the same codes as sockets, so the system call counts too. A host name with several addresses
  // has one error for each address.
  return networkCodes.test(String(code)) && (Array.isArray(errors) || socketCalls.test(String(syscall)))
}

/** Whether freeing disk space would end this outage. */
export const isDiskFull = (error: unknown): boolean => hasCode(error, '53100')

/**
 * Whether a commit that failed with this error may have happened all the same. A commit that the server refused did not
 * happen. A lost connection proves nothing, and neither does a server that shuts down: it may be waiting for standbys
 * after the commit was written.
 */
export const mayHaveCommitted = (error: unknown): boolean =>
  isOutage(error) && !/^(53|57014|57P03|58|25)/.test(toCode(error))

/**
 * Whether running the items of a failed batch one by one can succeed: values that do not fit (class 22), violated
 * constraints (23), deadlocks and serialization failures (40).
 */
export const isRetryableOneByOne = (error: unknown): boolean => /^(22|23|40)/.test(toCode(error))

export const isNumberOutOfRange = (error: unknown): boolean => hasCode(error, '22003')
export const isForeignKeyViolation = (error: unknown): boolean => hasCode(error, '23503')
export const isUniqueViolation = (error: unknown): boolean => hasCode(error, '23505')
/** Whether a lock was not granted within lock_timeout. */
export const isLockTimeout = (error: unknown): boolean => hasCode(error, '55P03')
/**
 * Whether the charge of one key failed because another batch took the credits or ended the period at the same time
 * (AS001), or because its scan is recorded already: nothing was changed, and the statements for every case decide.
 */
export const isLeftToOthers = (error: unknown): boolean => hasCode(error, 'AS001') || isUniqueViolation(error)
export const isDeadlock = (error: unknown): boolean => hasCode(error, '40P01')

const toCode = (error: unknown) => String((error as { code?: unknown }).code)
const hasCode = (error: unknown, code: string) => toCode(error) === code

/**
 * SQLSTATEs of an outage: connections (class 08), resources (53), a server that stops, starts or cancels a statement
 * (57), input and output of the server (58), a server that became read-only in a failover (25006), and one that ended a
 * connection because no statement arrived in time, such as a server that was frozen (25P03, 25P04).
 */
const serverCodes = /^(08...|53...|57014|57P0[1-5]|58...|25006|25P0[34])$/

/** Errors of sockets, including a process that has no file descriptors left to connect with. */
const networkCodes =
  /^E(CONN\w+|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|HOSTDOWN|NOTFOUND|AI_AGAIN|NOENT|MFILE|NFILE|ADDRNOTAVAIL|NOTCONN)$/
const socketCalls = /^(connect|socket|getaddrinfo|read|write)$/

/** Messages of the driver's errors that have no code. */
const driverMessages =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after)/
