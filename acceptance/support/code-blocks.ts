import { readFileSync } from 'node:fs'

/** `line` is the line of the document on which the text begins, counted from 1. */
export type CodeBlock = { language: string; text: string; line: number }

/** Reads the fenced blocks of a document in order; `path` is relative to the root of the repository. */
export function readCodeBlocks(path: string): CodeBlock[] {
  const document = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  return [...document.matchAll(/^( *)```(\w*)\n(.*?)^\1```$/gms)].map(
    ({ 0: whole, 2: language = '', 3: text = '', index }) => ({
      language,
      text,
      line: document.slice(0, index + whole.indexOf('\n')).split('\n').length + 1,
    }),
  )
}

/** The name under which a reader saves a block: `// scan.mjs` or `# scan.py` in its first line, or below `<?php`. */
export const toFileName = ({ text }: CodeBlock): string | undefined =>
  /^(?:<\?php\n)?(?:\/\/|#) ([\w-]+\.(?:mjs|py|sh|go|php|rb|java|cs|ps1))\n/.exec(text)?.[1]

/** Replaces values that differ from run to run. */
export const maskVariables = (text: string): string =>
  text
    .replaceAll(/assay_(test_)?[0-9A-Za-z]{38}/g, 'KEY')
    .replaceAll(/welcome#[\w-]{43}/g, 'welcome#TOKEN')
    .replaceAll(/whsec_[A-Za-z0-9+/]{43}=/g, 'SECRET')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    // ClamAV's official databases, whose build time documents show, are missing on machines that run tests.
    .replaceAll(/,\s*"signatures_at": ?"TIME"/g, '')
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
    .replaceAll(/00-[0-9a-f]{32}-[0-9a-f]{16}-0\d/g, 'TRACE')
    .replaceAll(/ClamAV \d+\.\d+\.\d+/g, 'ClamAV VERSION')
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .trim()
