import type { ScanResult } from '@assay/contract'
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { ApiError } from '../../api/call.ts'
import { refresh } from '../../api/hooks.ts'
import { type ScanRequest, sendScan } from '../../api/send-scan.ts'

export type Run = { scan: ScanRequest } & (
  | { state: 'sending'; share: number }
  | { state: 'pending'; id: string }
  | { state: 'done'; result: ScanResult }
  | { state: 'failed'; error: ApiError }
)

/** Runs one scan at a time from this page; a new scan cancels the previous one. */
export function useScanRun() {
  const [run, setRun] = useState<Run>()
  const current = useRef<AbortController>(undefined)
  const client = useQueryClient()

  const start = async (scan: ScanRequest) => {
    current.current?.abort()
    const controller = new AbortController()
    current.current = controller
    const { signal } = controller
    setRun({ scan, state: 'sending', share: 0 })
    try {
      const onSent = (share: number) => !signal.aborted && setRun({ scan, state: 'sending', share })
      const response = await sendScan(scan, { onSent, signal })
      if (signal.aborted) return
      setRun(
        'status' in response ? { scan, state: 'done', result: response } : { scan, state: 'pending', id: response.id },
      )
    } catch (error) {
      if (!signal.aborted) setRun({ scan, state: 'failed', error: error as ApiError })
    }
    await refresh(client)
  }

  return {
    run,
    start,
    cancel() {
      current.current?.abort()
      setRun(undefined)
    },
  }
}
