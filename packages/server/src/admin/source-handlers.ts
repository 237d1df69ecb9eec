import type { Source, SourceStore } from '../domain/ports/source-store.ts'
import { hideCredentials } from '../runtime/hide-credentials.ts'
import { type Handlers, requireFound } from './call.ts'

/** Handlers for sources of signatures. */
export function makeSourceHandlers({ sources }: { sources: Pick<SourceStore, 'listSources' | 'makeDue'> }) {
  return {
    listSources: async () => (await sources.listSources()).map(toSourceView),
    async updateSource(call) {
      const { name = '' } = call.params
      requireFound(await sources.makeDue(name), 'source')
      await call.audit('sources.update', name)
    },
  } satisfies Partial<Handlers>
}

const toSourceView = (source: Source) => ({
  name: source.name,
  url: hideCredentials(source.url),
  publisher: source.publisher,
  licence: source.licence,
  hours: source.everyHours,
  signatures: source.signatures,
  checked_at: source.checkedAt?.toISOString() ?? null,
  changed_at: source.changedAt?.toISOString() ?? null,
  attempted_at: source.attemptedAt?.toISOString() ?? null,
  error: source.error,
  held: source.held,
  refused: source.refused,
})
