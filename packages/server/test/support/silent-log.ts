import { makeLogger } from '../../src/runtime/logger.ts'

export const silentLog = makeLogger({ level: 'silent', region: 'test' })
