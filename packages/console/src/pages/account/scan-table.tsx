import type { ScanRow } from '@assay/contract/admin'
import { useNavigate } from '@tanstack/react-router'
import { Verdict } from '../../ui/badge.tsx'
import { toBytes } from '../../ui/format.ts'
import { RowButton, Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'

export const kindNames = { malware: 'Malware', nsfw_image: 'NSFW image' }

/** A table of scans. A row opens the scan on the history page. */
export function ScanTable({ scans, caption }: { scans: ScanRow[]; caption: string }) {
  const navigate = useNavigate()
  return (
    <Table
      caption={caption}
      rows={scans}
      keyOf={({ id }) => id}
      onOpen={({ id }) =>
        navigate({ to: '/history', search: (before: Record<string, unknown>) => ({ ...before, scan: id }) } as never)
      }
      columns={[
        {
          title: 'Name',
          cell: ({ content_name, signals }) => (
            <span className="flex max-w-72 flex-col items-start">
              <RowButton>{content_name ?? 'Unnamed'}</RowButton>
              {signals.length > 0 && (
                <span className="w-full truncate font-mono text-xs text-soft">{signals.join(', ')}</span>
              )}
            </span>
          ),
        },
        {
          title: 'Verdict',
          cell: ({ status, revised_status }) => (
            <span className="flex flex-wrap items-center gap-1.5">
              <Verdict status={status} />
              {revised_status !== null && (
                <>
                  <span className="text-soft">now</span>
                  <Verdict status={revised_status} />
                </>
              )}
            </span>
          ),
        },
        { title: 'Kind', cell: ({ scan_type }) => kindNames[scan_type], isExtra: true },
        { title: 'Size', cell: ({ content_length }) => toBytes(content_length), isNumber: true, isExtra: true },
        { title: 'Key', cell: ({ key_name }) => key_name ?? 'Unknown', isExtra: true },
        {
          title: 'Created',
          cell: ({ created_at }) => (
            <span className="text-soft">
              <Age at={created_at} />
            </span>
          ),
        },
      ]}
    />
  )
}
