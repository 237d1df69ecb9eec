import type { Answer } from '../../api/call.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { useSearchParams } from '../../api/use-search-params.ts'
import { Badge, type Tone } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { ExportLinks } from '../../ui/export-links.tsx'
import { SelectField } from '../../ui/field.tsx'
import { toBytes } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { Page } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Empty, ErrorMessage, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age } from '../../ui/time.tsx'

type Job = Answer<'listJobs'>['items'][number]
type State = 'waiting' | 'running' | 'paused' | 'stuck'

const tones: Record<Job['state'], Tone> = { waiting: 'pending', running: 'brand', paused: 'error' }
const kinds: Record<string, string> = { malware: 'malware', nsfw_image: 'NSFW image' }
const emptyTitles: Record<State | 'all', string> = {
  all: 'No jobs',
  waiting: 'No waiting jobs',
  running: 'No running jobs',
  paused: 'No paused jobs',
  stuck: 'No stuck jobs',
}

/** Background scans of all accounts in the queue, without their content. */
export function JobsPage() {
  const [params, setParams] = useSearchParams()
  const { state, cursor } = params as { state?: State; cursor?: string }
  const filter = state === undefined ? {} : { state }
  const jobs = useRead('listJobs', { query: { ...filter, ...(cursor && { cursor }) } }, { liveMs: 2000 })
  return (
    <Page
      title="Jobs"
      about="Waiting and running background scans, oldest first. Completed jobs leave this list."
      actions={<ExportLinks list="listJobs" input={{ query: filter }} />}
    >
      <div className="max-w-72">
        <SelectField
          label="Show"
          value={state ?? ''}
          options={[
            ['', 'All'],
            ['waiting', 'Waiting'],
            ['running', 'Running'],
            ['paused', 'Paused after a failure'],
            ['stuck', 'Stuck (retried or old)'],
          ]}
          onText={(text) => setParams({ state: text, cursor: undefined })}
        />
      </div>
      <Loaded query={jobs}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title={emptyTitles[state ?? 'all']}>Jobs appear here while they wait or run.</Empty>
          ) : (
            <>
              <Jobs rows={items} />
              <Pager next={next} label="Newer jobs" />
            </>
          )
        }
      </Loaded>
    </Page>
  )
}

function Jobs({ rows }: { rows: Job[] }) {
  const retry = useChange('retryJob')
  return (
    <>
      <ErrorMessage error={retry.error} />
      <Table
        caption="Jobs"
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Account',
            cell: ({ account_name, id }) => (
              <span className="flex flex-col">
                <LongText>
                  <span className="font-medium">{account_name}</span>
                </LongText>
                <code className="font-mono text-xs whitespace-nowrap text-faint">{id}</code>
              </span>
            ),
          },
          {
            title: 'State',
            cell: ({ state, held_until }) => (
              <span className="flex flex-col items-start gap-0.5">
                <Badge tone={tones[state]}>{state}</Badge>
                {state === 'paused' && held_until !== null && (
                  <span className="block text-faint md:max-w-24 md:leading-5">
                    next attempt <Age at={held_until} />
                  </span>
                )}
              </span>
            ),
          },
          {
            title: 'Kind',
            cell: ({ scan_type }) => <span className="whitespace-nowrap">{kinds[scan_type] ?? scan_type}</span>,
          },
          {
            title: 'Size',
            isNumber: true,
            cell: (job) => <span className="whitespace-nowrap">{toBytes(job.content_length)}</span>,
          },
          { title: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
          {
            title: 'Created',
            cell: ({ created_at }) => <Age at={created_at} />,
          },
          {
            title: 'Actions',
            isActions: true,
            cell: (job) =>
              job.state === 'paused' && (
                <Button
                  isSmall
                  aria-label={`Retry now: ${job.id}`}
                  onClick={() => retry.mutate({ params: { id: job.id } })}
                >
                  Retry now
                </Button>
              ),
          },
        ]}
      />
    </>
  )
}
