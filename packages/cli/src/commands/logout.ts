import { existsSync, rmSync } from 'node:fs'
import { toConfigPath } from '../config.ts'
import { print } from '../report/print.ts'

export async function logout(env: NodeJS.ProcessEnv): Promise<number> {
  const path = toConfigPath(env)
  const wasThere = existsSync(path)
  rmSync(path, { force: true })
  return await print(
    wasThere ? `Removed ${path}. The key itself stays valid until it is revoked.\n` : 'Nothing is stored.\n',
  )
}
