import { chmod, writeFile } from 'node:fs/promises'
import { convert } from '../convert.ts'
import type { Encoding, ModelName } from '../manifest.ts'

const [name, encoding, path] = process.argv.slice(2) as [ModelName, Encoding, string]
await writeFile(path, await convert(name, encoding), { flag: 'wx' })
// Processes of another user read the file, so its mode must not depend on the umask.
await chmod(path, 0o644)
