import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const service = process.env.ASSAY_DEV_SERVICE ?? 'http://127.0.0.1:8080'

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [react(), tailwindcss()],
  build: {
    target: 'es2022',
    // The content security policy of the page forbids inline scripts and data URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
    // The bundle contains code of other projects, whose licences require their texts beside it.
    license: { fileName: 'licenses.md' },
  },
  server: { proxy: { '/admin': service, '/openapi.json': service, '/reference': service } },
})
