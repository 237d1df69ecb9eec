import type { CodeBlock } from './code-blocks.ts'

/** A command of a document and the output that the document shows for it. */
export type Step = { command: string; shown: string }

/** Programs with which a line begins that the reader is to type. */
const programs =
  'assay|assay-scan|buildah|cat|cd|clamdscan|curl|docker|echo|export|git|journalctl|kubectl|node|npm|npx|openssl|' +
  'pg_dump|podman|printf|python3|sh|sudo|systemctl|packaging/\\S+'
const command = new RegExp(`^(?:[A-Z_]+=\\S+ )*(?:${programs}) `)

/** Splits a block of shell into commands, or a transcript into commands behind a `$` with their output. */
export function toSteps({ language, text }: CodeBlock): Step[] {
  const lines = text.replaceAll(/\\\n/g, '\\\0').split('\n')
  const restore = (line: string) => line.replaceAll('\0', '\n')
  if (language === 'sh') {
    const typed = lines.filter((line) => line.trim() !== '' && !line.startsWith('#'))
    return typed.map((line) => ({ command: restore(line), shown: '' }))
  }
  const steps: Step[] = []
  for (const line of lines) {
    const last = steps.at(-1)
    if (line.startsWith('$ ')) steps.push({ command: restore(line.slice(2)), shown: '' })
    else if (last !== undefined) last.shown += `${restore(line)}\n`
  }
  return steps
}

/** Finds lines that look like commands although neither a `$` nor the language of the block marks them. */
export function findUndeclared({ language, text }: CodeBlock): string[] {
  if (!['', 'text', 'console', 'bash', 'shell'].includes(language)) return []
  return text.split('\n').filter((line) => command.test(line))
}

export const isShell = ({ language }: CodeBlock): boolean => language === 'sh'
export const isTranscript = (block: CodeBlock): boolean => !isShell(block) && toSteps(block).length > 0
