import type { Webhooks } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { toAge } from '../../ui/format.ts'
import { Table } from '../../ui/table.tsx'

type Receiver = Webhooks['endpoints'][number]

/** The addresses that were called, and how they are. */
export function ReceiversSection() {
  const webhooks = useRead('getWebhooks', {}, { liveMs: 5000 })
  return (
    <section className="flex flex-col gap-3">
      <h2 className="font-semibold">Receivers</h2>
      <Reading of={webhooks}>
        {({ endpoints }) =>
          endpoints.length === 0 ? (
            <Empty title="No receiver yet">
              An address is listed once a scan with that <code className="font-mono text-xs">callback_url</code> has
              ended.
            </Empty>
          ) : (
            <Table
              caption="Receivers"
              rows={endpoints}
              keyOf={({ url }) => url}
              columns={[
                { title: 'Address', cell: ({ url }) => <code className="font-mono text-xs break-all">{url}</code> },
                { title: 'State', cell: (receiver) => <State {...receiver} /> },
                {
                  title: 'Last success',
                  cell: ({ last_success_at }) => (last_success_at === null ? 'Never' : toAge(last_success_at)),
                  isExtra: true,
                },
              ]}
            />
          )
        }
      </Reading>
    </section>
  )
}

function State({ paused_at, failing_since, last_success_at }: Receiver) {
  if (paused_at !== null) return <Badge tone="error">paused {toAge(paused_at)}</Badge>
  if (failing_since !== null) return <Badge tone="threat">failing since {toAge(failing_since)}</Badge>
  return <Badge tone={last_success_at === null ? 'plain' : 'clean'}>{last_success_at === null ? 'new' : 'well'}</Badge>
}
