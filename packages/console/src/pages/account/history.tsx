import { type ScanFilter, ScanFilter as schema } from '@assay/contract/admin'
import { toUrl } from '../../api/call.ts'
import { useRead } from '../../api/hooks.ts'
import { useAddress } from '../../api/use-address.ts'
import { Button, buttonClass } from '../../ui/button.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'
import { More } from '../../ui/table.tsx'
import { HistoryFilters } from './history-filters.tsx'
import { ScanDrawer } from './scan-drawer.tsx'
import { ScanTable } from './scan-table.tsx'

/** All that was scanned, and what became of each. */
export function HistoryPage() {
  const [address, setAddress] = useAddress()
  const { cursor, ...filter } = toFilter(address)
  const isFiltered = Object.keys(filter).length > 0
  const query = { ...filter, limit: '50', ...(cursor === undefined ? {} : { cursor }) }
  const scans = useRead('listScans', { query }, cursor === undefined ? { liveMs: 5000 } : {})
  return (
    <Page
      title="History"
      about="Names, hashes and verdicts. The content itself is deleted as soon as its scan ends."
      actions={
        <a href={toUrl('exportScans', { query: filter })} download="scans.csv" className={buttonClass()}>
          Export CSV
        </a>
      }
    >
      <HistoryFilters address={address} onChange={(more) => setAddress({ ...more, cursor: undefined })} />
      <Reading of={scans}>
        {({ items, next }) => (
          <>
            {items.length > 0 ? (
              <ScanTable caption="Scans" scans={items} />
            ) : (
              <Empty title={isFiltered ? 'No scan is like that' : 'Nothing was scanned yet'}>
                {isFiltered ? 'Loosen a filter to see more.' : 'Every scan is listed here, with its verdict.'}
              </Empty>
            )}
            <div className="flex flex-wrap items-center justify-center gap-3">
              {cursor !== undefined && (
                <Button look="quiet" onClick={() => setAddress({ cursor: undefined })}>
                  Newest
                </Button>
              )}
              <More next={next} onMore={(cursor) => setAddress({ cursor }, { asNewPage: true })} />
            </div>
          </>
        )}
      </Reading>
      {address.scan !== undefined && <ScanDrawer id={address.scan} onClose={() => setAddress({ scan: undefined })} />}
    </Page>
  )
}

/** What of the address is meant for the service. */
function toFilter(address: Record<string, string | undefined>): ScanFilter {
  const names = Object.keys(schema.properties).filter((name) => name !== 'limit')
  return Object.fromEntries(names.filter((name) => address[name] !== undefined).map((name) => [name, address[name]]))
}
