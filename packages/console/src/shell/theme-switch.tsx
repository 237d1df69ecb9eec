import { setTheme, type Theme, useTheme } from './theme.ts'

const themes: [Theme, string][] = [
  ['light', 'Light'],
  ['dark', 'Dark'],
  ['system', 'System'],
]

export function ThemeSwitch() {
  const chosen = useTheme()
  return (
    <fieldset className="flex rounded-lg border border-line bg-sunk p-0.5">
      <legend className="sr-only">Theme</legend>
      {themes.map(([theme, label]) => (
        <button
          key={theme}
          type="button"
          aria-pressed={chosen === theme}
          onClick={() => setTheme(theme)}
          className="flex-1 rounded-md px-2 py-1 text-xs text-soft aria-pressed:bg-panel aria-pressed:font-medium aria-pressed:text-ink aria-pressed:shadow-xs"
        >
          {label}
        </button>
      ))}
    </fieldset>
  )
}
