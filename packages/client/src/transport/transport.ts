import type { Content } from '../content.ts'

/** One request to one address, sent once. */
export type Outgoing = {
  method: 'GET' | 'POST'
  url: string
  headers: Record<string, string>
  body?: string | Form
}

export type Form = {
  /** Text fields, by name. They go first. */
  fields: Record<string, string>
  content: Content
  /** Is told how many bytes of the content the network has taken so far. */
  onSent(bytes: number): void
}

export type Incoming = {
  status: number
  findHeader(name: string): string | undefined
  text: string
}

/** Throws ConnectionFailed, an error of the content, or anything when the signal is aborted. Follows no redirect. */
export type Transport = (outgoing: Outgoing, signal: AbortSignal) => Promise<Incoming>

/** Answers are short. Whoever sends more is not Assay. */
export const maxAnswerBytes = 1024 * 1024
