import type { Webhooks } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { Badge, type Tone } from '../../ui/badge.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { toAge, toDateTime } from '../../ui/format.ts'
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
  if (paused_at !== null) return <Words tone="error" word="paused" since={paused_at} />
  if (failing_since !== null) return <Words tone="threat" word="failing" since={failing_since} />
  return <Badge tone={last_success_at === null ? 'plain' : 'clean'}>{last_success_at === null ? 'new' : 'well'}</Badge>
}

function Words({ tone, word, since }: { tone: Tone; word: string; since: string }) {
  return (
    <span className="flex flex-wrap items-center gap-x-2">
      <Badge tone={tone}>{word}</Badge> <span className="text-soft">since {toDateTime(since)}</span>
    </span>
  )
}
