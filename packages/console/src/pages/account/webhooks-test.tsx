import { useState } from 'react'
import type { Answer } from '../../api/call.ts'
import { useForm } from '../../api/use-form.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { ErrorMessage } from '../../ui/states.tsx'

/** Sends a signed sample to an address and shows the response. */
export function TestCard() {
  const [answer, setAnswer] = useState<Answer<'testWebhook'>>()
  const form = useForm('testWebhook', { url: '' }, { onDone: setAnswer })
  return (
    <Card title="Send a test webhook">
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <TextField
          label="Receiver URL"
          type="url"
          placeholder="https://example.com/webhooks/assay"
          hint="Receives one signed sample of a clean scan. Nothing is recorded or charged."
          {...form.text('url')}
        />
        <div>
          <Button type="submit" isBusy={form.isBusy}>
            Send test
          </Button>
        </div>
        <ErrorMessage error={form.error} />
        <div role="status" className="flex flex-col gap-3 empty:hidden">
          {answer !== undefined && !form.isBusy && <TestResponse {...answer} />}
        </div>
      </form>
    </Card>
  )
}

function TestResponse({ status, duration_ms, answer, delivered }: Answer<'testWebhook'>) {
  return (
    <>
      <p className="flex flex-wrap items-center gap-2">
        <Badge tone={delivered ? 'clean' : 'threat'}>{delivered ? 'accepted' : 'rejected'}</Badge>
        {status === null ? 'No response' : `Status ${status}`} after {duration_ms} ms
      </p>
      {answer !== '' && <Code label={status === null ? 'Error' : 'Response'} text={answer} />}
    </>
  )
}
