import { useNavigate } from '@tanstack/react-router'
import { useRead, useSession } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { useSearchParams } from '../../api/use-search-params.ts'
import { Button } from '../../ui/button.tsx'
import { ExportLinks } from '../../ui/export-links.tsx'
import { TextField } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { RevisionTable } from '../../ui/revision-table.tsx'
import { Empty, ErrorMessage, Loaded } from '../../ui/states.tsx'

export function RevisionsPage() {
  const [{ cursor }] = useSearchParams()
  const navigate = useNavigate()
  const query = cursor === undefined ? {} : { cursor }
  const revisions = useRead('listAccountRevisions', { query }, cursor === undefined ? { liveMs: 10_000 } : {})
  return (
    <Page
      title="Revisions"
      about="Earlier results of which something else is known by now, by the hash of their content. The results stay as they were."
      actions={<ExportLinks list="listAccountRevisions" />}
    >
      <WebhookCard />
      <Loaded query={revisions}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title="No revisions">
              When the content of an earlier scan becomes known as malware, or a false positive is cleared, its result
              appears here.
            </Empty>
          ) : (
            <>
              <RevisionTable
                rows={items}
                onOpen={({ scan_id }) => void navigate({ to: '/history', search: { scan: scan_id } } as never)}
              />
              <Pager next={next} />
            </>
          )
        }
      </Loaded>
    </Page>
  )
}

function WebhookCard() {
  const webhook = useRead('getRevisionWebhook', {})
  const isOwner = useSession().data?.account?.role === 'owner'
  return (
    <Card title="Webhook">
      <Loaded query={webhook}>
        {({ url }) =>
          isOwner ? (
            <WebhookForm key={url} url={url} />
          ) : (
            <p className="break-all text-soft">
              {url ?? 'No webhook is sent. An owner of the account can set its URL.'}
            </p>
          )
        }
      </Loaded>
    </Card>
  )
}

function WebhookForm({ url }: { url: string | null }) {
  const form = useForm('setRevisionWebhook', { url })
  const setUrl = (text: string) => form.set({ url: text.trim() === '' ? null : text.trim() })
  return (
    <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
      <TextField
        label="Receiver URL"
        type="url"
        placeholder="https://example.com/webhooks/revised"
        hint="Receives one signed webhook of the type scan.revised for each revision. Leave empty for none."
        {...form.text('url')}
        onText={setUrl}
      />
      <div>
        <Button type="submit" isBusy={form.isBusy}>
          Save
        </Button>
      </div>
      <ErrorMessage error={form.error} />
    </form>
  )
}
