import type { ReactNode } from 'react'

export type Tone = 'clean' | 'threat' | 'error' | 'pending' | 'plain' | 'brand'

const tones: Record<Tone, string> = {
  clean: 'bg-clean-soft text-clean',
  threat: 'bg-threat-soft text-threat',
  error: 'bg-error-soft text-error',
  pending: 'bg-pending-soft text-pending',
  brand: 'bg-brand-soft text-brand',
  plain: 'bg-sunk text-soft',
}

export function Badge({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span
      className={`inline-flex items-center gap-1.5 rounded-full px-2.5 py-0.5 text-xs font-medium whitespace-nowrap ${tones[tone]}`}
    >
      {children}
    </span>
  )
}

/** A verdict with a symbol, so that it can be told apart without its colour. */
export function Verdict({ status }: { status: 'clean' | 'threat' | 'error' | 'pending' }) {
  return (
    <Badge tone={status}>
      <span aria-hidden="true">{{ clean: '✓', threat: '!', error: '?', pending: '…' }[status]}</span>
      {status}
    </Badge>
  )
}
