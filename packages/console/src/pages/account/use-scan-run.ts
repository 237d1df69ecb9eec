import type { ScanResult } from '@assay/contract'
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { ApiError } from '../../api/call.ts'
import { refresh } from '../../api/hooks.ts'
import { type ScanOrder, sendScan } from '../../api/send-scan.ts'

export type Run = { order: ScanOrder } & (
  | { state: 'sending'; share: number }
  | { state: 'pending'; id: string }
  | { state: 'done'; result: ScanResult }
  | { state: 'failed'; error: ApiError }
)

/** One scan from the page at a time: sent, waited for, or called off. */
export function useScanRun() {
  const [run, setRun] = useState<Run>()
  const current = useRef<AbortController>(undefined)
  const client = useQueryClient()

  const start = async (order: ScanOrder) => {
    current.current?.abort()
    const controller = new AbortController()
    current.current = controller
    const { signal } = controller
    setRun({ order, state: 'sending', share: 0 })
    try {
      const onSent = (share: number) => !signal.aborted && setRun({ order, state: 'sending', share })
      const sent = await sendScan(order, { onSent, signal })
      if (signal.aborted) return
      setRun('status' in sent ? { order, state: 'done', result: sent } : { order, state: 'pending', id: sent.id })
    } catch (error) {
      if (!signal.aborted) setRun({ order, state: 'failed', error: error as ApiError })
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
