import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { ApiError, putFile } from '../../api/call.ts'
import { refresh } from '../../api/hooks.ts'
import { markInvisible } from '../../api/marked-json.ts'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/page.tsx'
import { ErrorMessage } from '../../ui/states.tsx'

/** Uploads signatures, YARA rules or databases of ClamAV, such as for a machine without internet access. */
export function AddSignatures() {
  const client = useQueryClient()
  const input = useRef<HTMLInputElement>(null)
  const [state, setState] = useState<{ isBusy: boolean; message?: string; error?: ApiError }>({ isBusy: false })
  const send = async (file: File) => {
    setState({ isBusy: true })
    try {
      await putFile('uploadSignatures', { name: file.name }, file)
      setState({ isBusy: false, message: `${markInvisible(file.name)} is valid and will be in use within seconds.` })
      await refresh(client)
    } catch (error) {
      setState({ isBusy: false, error: error instanceof ApiError ? error : new ApiError(String(error), { status: 0 }) })
    }
  }
  return (
    <Card title="Upload a file">
      <div className="flex flex-col items-start gap-3">
        <p className="text-soft">
          ClamAV signatures (.ndb, .ldb, .hdb, .hsb) or YARA rules (.yar), for all nodes; or databases of ClamAV (.cvd,
          .cld), for this node only.
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
        {state.message !== undefined && (
          <p role="status" className="[overflow-wrap:anywhere]">
            {state.message}
          </p>
        )}
        <ErrorMessage error={state.error} />
      </div>
    </Card>
  )
}
