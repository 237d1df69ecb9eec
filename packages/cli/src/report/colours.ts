type Colour = 'red' | 'green' | 'yellow' | 'bold'

const codes: Record<Colour, number> = { red: 31, green: 32, yellow: 33, bold: 1 }

export type Paint = (colour: Colour, text: string) => string

/** Only on a terminal that knows them, and never against https://no-color.org. */
export function makePaint(isTerminal: boolean, env: NodeJS.ProcessEnv): Paint {
  const isOn = isTerminal && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  return (colour, text) => (isOn ? `\x1b[${codes[colour]}m${text}\x1b[0m` : text)
}
