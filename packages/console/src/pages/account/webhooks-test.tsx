import { useState } from 'react'
import type { Answer } from '../../api/call.ts'
import { useForm } from '../../api/use-form.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'

/** A signed sample to an address, and what it answers. */
export function TestCard() {
  const [answer, setAnswer] = useState<Answer<'testWebhook'>>()
  const form = useForm('testWebhook', { url: '' }, { onDone: setAnswer })
  return (
    <Card title="Send a test">
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <TextField
          label="Receiver URL"
          type="url"
          placeholder="https://example.com/webhooks/assay"
          hint="Gets a signed sample of a clean scan, once. Nothing is recorded or charged."
          value={form.values.url}
          error={form.errorOf('url')}
          onText={(url) => form.set({ url })}
        />
        <div>
          <Button type="submit" isBusy={form.isBusy}>
            Send test
          </Button>
        </div>
        <Failure error={form.error} />
        <div role="status" className="flex flex-col gap-3 empty:hidden">
          {answer !== undefined && !form.isBusy && <TestAnswer {...answer} />}
        </div>
      </form>
    </Card>
  )
}

function TestAnswer({ status, duration_ms, answer, delivered }: Answer<'testWebhook'>) {
  return (
    <>
      <p className="flex flex-wrap items-center gap-2">
        <Badge tone={delivered ? 'clean' : 'threat'}>{delivered ? 'accepted' : 'not accepted'}</Badge>
        {status === null ? 'No answer' : `Answered ${status}`} after {duration_ms} ms
      </p>
      {answer !== '' && <Code label={status === null ? 'What went wrong' : 'Its answer'} text={answer} />}
    </>
  )
}
