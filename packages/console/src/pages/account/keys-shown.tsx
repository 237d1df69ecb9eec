import { Button } from '../../ui/button.tsx'
import { Code, Secret } from '../../ui/copy.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'

/** The one time that a key is to be seen. */
export function NewKeyShown({ apiKey, about, onClose }: { apiKey: string; about?: string; onClose: () => void }) {
  return (
    <Dialog title="Your new key" onClose={onClose}>
      <div className="flex flex-col gap-4">
        <Secret label="Copy it now. It is stored nowhere and cannot be shown again." text={apiKey} />
        {about !== undefined && <p className="text-soft">{about}</p>}
        <Code label="See that it works" text={`curl -H 'X-API-Key: ${apiKey}' \\\n  ${location.origin}/v1/me`} />
      </div>
      <Actions>
        <Button look="main" onClick={onClose}>
          I have copied it
        </Button>
      </Actions>
    </Dialog>
  )
}
