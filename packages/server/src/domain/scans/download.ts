import { maxContentBytes, type ScanKind, type ScanMode } from '@assay/contract'
import type { ContentFetcher, ContentStore, FetchResult } from '../ports/content-store.ts'

type Deps = {
  fetcher: ContentFetcher
  contents: ContentStore
  /** Null: any host that is public. */
  findDownloadHosts(accountId: string): Promise<string[] | null>
}

export type Wanted = { accountId: string; kind: ScanKind; mode: ScanMode; signal: AbortSignal }
export type Download = (url: string, wanted: Wanted) => Promise<FetchResult>

const totalMs: Record<ScanMode, number> = { sync: 60_000, async: 300_000 }

/** Content by its URL, within the limits of the kind of scan and the hosts of the account. */
export const makeDownload =
  ({ fetcher, contents, findDownloadHosts }: Deps): Download =>
  async (url, { accountId, kind, mode, signal }) => {
    const hosts = await findDownloadHosts(accountId)
    return fetcher.fetchContent(url, {
      ...{ maxBytes: maxContentBytes[kind][mode], totalMs: totalMs[mode], signal, contents },
      ...(hosts === null ? {} : { isHostAllowed: (host: string) => isListed(host, hosts) }),
    })
  }

/** `example.com` is itself alone, `*.example.com` everything below it. */
const isListed = (host: string, hosts: string[]): boolean =>
  hosts.some((listed) => (listed.startsWith('*.') ? host.endsWith(listed.slice(1)) : host === listed))
