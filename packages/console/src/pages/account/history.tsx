import { type ScanFilter, ScanFilter as schema } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { useSearchParams } from '../../api/use-search-params.ts'
import { ExportLinks } from '../../ui/export-links.tsx'
import { Page } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { HistoryFilters } from './history-filters.tsx'
import { ScanDrawer } from './scan-drawer.tsx'
import { ScanTable } from './scan-table.tsx'

export function HistoryPage() {
  const [params, setParams] = useSearchParams()
  const { cursor, ...filter } = toFilter(params)
  const isFiltered = Object.keys(filter).length > 0
  const query = { ...filter, limit: '50', ...(cursor === undefined ? {} : { cursor }) }
  const scans = useRead('listScans', { query }, cursor === undefined ? { liveMs: 5000 } : {})
  return (
    <Page
      title="History"
      about="Names, hashes and verdicts of all scans. The content is deleted when its scan completes."
      actions={<ExportLinks list="listScans" input={{ query: filter }} />}
    >
      <HistoryFilters params={params} onChange={(changes) => setParams({ ...changes, cursor: undefined })} />
      <Loaded query={scans}>
        {({ items, next }) => (
          <>
            {items.length > 0 ? (
              <ScanTable caption="Scans" scans={items} />
            ) : (
              <Empty title={isFiltered ? 'No matching scans' : 'No scans yet'}>
                {isFiltered ? 'Change or clear the filters.' : 'Scans appear here with their verdicts.'}
              </Empty>
            )}
            <Pager next={next} />
          </>
        )}
      </Loaded>
      {params.scan !== undefined && <ScanDrawer id={params.scan} onClose={() => setParams({ scan: undefined })} />}
    </Page>
  )
}

/** The query parameters that are filters of the service. */
function toFilter(params: Record<string, string | undefined>): ScanFilter {
  const names = Object.keys(schema.properties).filter((name) => name !== 'limit')
  return Object.fromEntries(names.filter((name) => params[name] !== undefined).map((name) => [name, params[name]]))
}
