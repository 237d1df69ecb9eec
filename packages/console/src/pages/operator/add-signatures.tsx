import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { ApiError, putFile } from '../../api/call.ts'
import { refresh } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { Card } from '../../ui/page.tsx'

/** ClamAV's databases for a machine without the internet, or rules of one's own. */
export function AddSignatures() {
  const client = useQueryClient()
  const input = useRef<HTMLInputElement>(null)
  const [state, setState] = useState<{ isBusy: boolean; said?: string; error?: ApiError }>({ isBusy: false })
  const send = async (file: File) => {
    setState({ isBusy: true })
    try {
      await putFile('uploadSignatures', { name: file.name }, file)
      setState({ isBusy: false, said: `${file.name} is good. It is in use within seconds.` })
      await refresh(client)
    } catch (error) {
      setState({ isBusy: false, error: error instanceof ApiError ? error : new ApiError(String(error), { status: 0 }) })
    }
  }
  return (
    <Card title="Add a file">
      <div className="flex flex-col items-start gap-3">
        <p className="text-soft">
          Your own signatures (.ndb, .ldb, .hdb, .hsb) or YARA rules (.yar), or databases of ClamAV (.cvd, .cld) brought
          from a machine with the internet.
        </p>
        <input
          ref={input}
          type="file"
          className="sr-only"
          aria-label="Signature file"
          tabIndex={-1}
          onChange={(event) => {
            const [file] = event.target.files ?? []
            if (file !== undefined) void send(file)
            event.target.value = ''
          }}
        />
        <Button isBusy={state.isBusy} onClick={() => input.current?.click()}>
          Choose a file
        </Button>
        {state.said !== undefined && (
          <p role="status" className="[overflow-wrap:anywhere]">
            {state.said}
          </p>
        )}
        <Failure error={state.error} />
      </div>
    </Card>
  )
}
