import { hostname } from 'node:os'
import { v7 as newUuid } from 'uuid'
import type { Config } from '../config/load-config.ts'
import type { EngineState } from '../domain/ports/engines.ts'
import type { AssayNode } from '../domain/ports/node-store.ts'
import type { Readiness } from '../domain/readiness.ts'
import { systemClock } from '../runtime/clock.ts'
import { version } from '../runtime/version.ts'

type Deps = {
  roles: string[]
  readiness: Readiness
  listEngines(): { name: string; state: EngineState | undefined }[]
}

/** What this process tells others of itself. */
export function makeNodeInfo({ roles, readiness, listEngines }: Deps) {
  const self = { id: newUuid(), name: hostname(), roles, version, startedAt: systemClock.now() }
  return async (): Promise<AssayNode> => {
    const { status, reasons } = await readiness.check()
    const engines = listEngines().map(({ name, state }) => ({
      name,
      version: state?.version ?? null,
      signaturesAt: state?.signaturesAt?.toISOString() ?? null,
    }))
    return { ...self, status, reasons, engines }
  }
}

export const listRoles = ({ roles }: Config): string[] => [
  ...(roles.api ? ['api'] : []),
  ...(roles.worker ? ['worker'] : []),
]
