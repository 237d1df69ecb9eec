import type { Webhooks } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { Badge, type Tone } from '../../ui/badge.tsx'
import { toDateTime } from '../../ui/format.ts'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'

type Receiver = Webhooks['endpoints'][number]

/** The receivers of this account with their state. */
export function ReceiversSection() {
  const webhooks = useRead('getWebhooks', {}, { liveMs: 5000 })
  return (
    <section className="flex flex-col gap-3">
      <h2 className="font-semibold">Receivers</h2>
      <Loaded query={webhooks}>
        {({ endpoints }) =>
          endpoints.length === 0 ? (
            <Empty title="No receivers yet">
              A receiver appears here once a scan with its address as{' '}
              <code className="font-mono text-xs">callback_url</code> has completed.
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
                  cell: ({ last_success_at }) => <Age at={last_success_at} otherwise="Never" />,
                  isExtra: true,
                },
              ]}
            />
          )
        }
      </Loaded>
    </section>
  )
}

function State({ paused_at, failing_since, last_success_at }: Receiver) {
  if (paused_at !== null) return <StateSince tone="error" state="Paused" since={paused_at} />
  if (failing_since !== null) return <StateSince tone="threat" state="Failing" since={failing_since} />
  return (
    <Badge tone={last_success_at === null ? 'plain' : 'clean'}>{last_success_at === null ? 'New' : 'Healthy'}</Badge>
  )
}

function StateSince({ tone, state, since }: { tone: Tone; state: string; since: string }) {
  return (
    <span className="flex flex-wrap items-center gap-x-2">
      <Badge tone={tone}>{state}</Badge> <span className="text-soft">since {toDateTime(since)}</span>
    </span>
  )
}
