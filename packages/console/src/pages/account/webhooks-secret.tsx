import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Secret } from '../../ui/copy.tsx'
import { toDateTime } from '../../ui/format.ts'
import { Card } from '../../ui/page.tsx'
import { ErrorMessage } from '../../ui/states.tsx'
import { Age } from '../../ui/time.tsx'

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
            The service signs every webhook with this secret, and your receiver verifies the signature with it. The
            audit log records who reveals it.
          </p>
        ) : (
          <Secret label="Store the secret in the configuration of your receiver." text={secret} />
        )}
        {rotatedAt !== null && (
          <p className="text-soft">
            Rotated <Age at={rotatedAt} />.
          </p>
        )}
        {isOverlap && <p className="text-soft">The previous secret also signs until {toDateTime(until)}.</p>}
        <ErrorMessage error={reveal.error ?? webhooks.error} />
      </div>
      {isRotating && (
        <RotateDialog
          onClose={() => setRotating(false)}
          onDone={(newSecret) => {
            setSecret(newSecret)
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
      action="Rotate"
      mutation={rotate}
      onConfirm={() => rotate.mutate({})}
      onClose={onClose}
    >
      Both secrets are valid for 24 hours. <code className="font-mono text-xs text-ink">webhook-signature</code>{' '}
      contains a signature with each. <code className="font-mono text-xs text-ink">X-Api-Signature</code> uses the new
      secret in the first attempt and the old one in the next, 5 seconds later.
    </Confirm>
  )
}
