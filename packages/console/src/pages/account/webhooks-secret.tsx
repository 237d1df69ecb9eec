import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Secret } from '../../ui/copy.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { toAge, toDateTime } from '../../ui/format.ts'
import { Card } from '../../ui/page.tsx'

export function SecretCard() {
  const webhooks = useRead('getWebhooks', {}, { liveMs: 5000 })
  const [secret, setSecret] = useState<string>()
  const [isRotating, setRotating] = useState(false)
  const reveal = useChange('revealWebhookSecret', { onDone: (answer) => setSecret(answer.secret) })
  const { secret_rotated_at: rotatedAt = null, previous_until: until = null } = webhooks.data ?? {}
  const isOverlap = until !== null && Date.parse(until) > Date.now()
  return (
    <Card
      title="Webhook secret"
      actions={
        <>
          {secret === undefined ? (
            <Button onClick={() => reveal.mutate({})} isBusy={reveal.isPending}>
              Reveal
            </Button>
          ) : (
            <Button onClick={() => setSecret(undefined)}>Hide</Button>
          )}
          <Button onClick={() => setRotating(true)}>Rotate</Button>
        </>
      }
    >
      <div className="flex flex-col gap-3">
        {secret === undefined ? (
          <p className="text-soft">
            Every webhook is signed with it. Your receiver needs it to tell ours from anybody else’s. Who reveals it is
            noted in the audit log.
          </p>
        ) : (
          <Secret label="Keep it where your receiver keeps its secrets." text={secret} />
        )}
        {rotatedAt !== null && <p className="text-soft">Rotated {toAge(rotatedAt)}.</p>}
        {isOverlap && (
          <p className="text-soft">
            The one before it also signs <code className="font-mono text-xs">webhook-signature</code> until{' '}
            {toDateTime(until)}.
          </p>
        )}
        <Failure error={reveal.error ?? webhooks.error} />
      </div>
      {isRotating && (
        <RotateDialog
          onClose={() => setRotating(false)}
          onDone={(made) => {
            setSecret(made)
            setRotating(false)
          }}
        />
      )}
    </Card>
  )
}

function RotateDialog({ onClose, onDone }: { onClose: () => void; onDone: (secret: string) => void }) {
  const rotate = useChange('rotateWebhookSecret', { onDone: ({ secret }) => onDone(secret) })
  return (
    <Confirm
      title="Rotate the webhook secret"
      action="Make a new secret"
      of={rotate}
      onConfirm={() => rotate.mutate({})}
      onClose={onClose}
    >
      <code className="font-mono text-xs text-ink">X-Api-Signature</code> is made with the new secret at once: a
      receiver that checks it refuses what comes until it knows the new one, and that is tried again.{' '}
      <code className="font-mono text-xs text-ink">webhook-signature</code> has a signature of each for 24 hours.
    </Confirm>
  )
}
