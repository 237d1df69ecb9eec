import type { ExternalKind } from './adapter.ts'
import { clamdKind } from './clamd.ts'
import { commandKind } from './command/command-kind.ts'
import { httpKind } from './http.ts'
import { icapKind } from './icap/icap-kind.ts'

/** The kinds of engines that `kind = "..."` in assay.toml can name. */
export const kinds: Readonly<Record<string, ExternalKind>> = {
  clamd: clamdKind,
  command: commandKind,
  http: httpKind,
  icap: icapKind,
}
