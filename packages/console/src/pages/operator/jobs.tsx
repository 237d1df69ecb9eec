import { useNavigate, useSearch } from '@tanstack/react-router'
import { useChange, useRead } from '../../api/hooks.ts'
import { Badge, type Tone } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Empty, Failure, Reading } from '../../ui/feedback.tsx'
import { SelectField } from '../../ui/field.tsx'
import { toAge, toBytes } from '../../ui/format.ts'
import { Page } from '../../ui/page.tsx'
import { More, Table } from '../../ui/table.tsx'

type State = 'waiting' | 'running' | 'paused' | 'stuck'
const tones: Record<Exclude<State, 'stuck'>, Tone> = { waiting: 'pending', running: 'brand', paused: 'error' }

/** Background scans of all accounts, oldest first. Never their content. */
export function JobsPage() {
  const { state, cursor } = useSearch({ strict: false }) as { state?: State; cursor?: string }
  const navigate = useNavigate()
  const query = { ...(state && { state }), ...(cursor && { cursor }) }
  const jobs = useRead('listJobs', { query }, { liveMs: 2000 })
  const retry = useChange('retryJob')
  const go = (search: Record<string, string | undefined>) => void navigate({ to: '.', search })
  return (
    <Page title="Jobs" about="Scans in the background that wait or run. What is settled is gone from here.">
      <div className="max-w-56">
        <SelectField
          label="Show"
          value={state ?? ''}
          options={[
            ['', 'All'],
            ['waiting', 'Waiting'],
            ['running', 'Running'],
            ['paused', 'Paused after a failure'],
            ['stuck', 'Stuck: tried before, or old'],
          ]}
          onText={(text) => go({ state: text === '' ? undefined : text })}
        />
      </div>
      <Failure error={retry.error} />
      <Reading of={jobs}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title="Nothing waits">Jobs appear here while they wait or run.</Empty>
          ) : (
            <>
              <Table
                caption="Jobs"
                rows={items}
                keyOf={({ id }) => id}
                columns={[
                  { title: 'State', cell: (job) => <Badge tone={tones[job.state]}>{job.state}</Badge> },
                  { title: 'Account', cell: ({ account_name }) => account_name },
                  { title: 'Kind', cell: ({ scan_type }) => scan_type },
                  { title: 'Size', isNumber: true, cell: (job) => toBytes(job.content_length) },
                  { title: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
                  { title: 'Since', cell: ({ created_at }) => toAge(created_at) },
                  {
                    title: 'Id',
                    isExtra: true,
                    cell: ({ id }) => <code className="font-mono text-xs">{id}</code>,
                  },
                  {
                    title: 'Actions',
                    cell: (job) =>
                      job.state === 'paused' && (
                        <Button
                          look="quiet"
                          aria-label={`Try ${job.id} now`}
                          onClick={() => retry.mutate({ params: { id: job.id } })}
                        >
                          Try now
                        </Button>
                      ),
                  },
                ]}
              />
              <More next={next} onMore={(after) => go({ ...(state && { state }), cursor: after })} />
            </>
          )
        }
      </Reading>
    </Page>
  )
}
