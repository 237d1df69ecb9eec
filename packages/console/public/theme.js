// Before anything is drawn, so that a dark page never flashes white.
const chosen = localStorage.getItem('assay-theme') ?? 'system'
const isDark = chosen === 'dark' || (chosen === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
