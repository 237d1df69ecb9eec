import cluster from 'node:cluster'
import type { AddressInfo } from 'node:net'
import * as tf from '@tensorflow/tfjs'
import '@tensorflow/tfjs-backend-wasm'
import express from 'express'
import jpeg from 'jpeg-js'
import multer from 'multer'
import { load } from 'nsfwjs'
import sharp from 'sharp'

/**
 * The usual alternative to Assay, as in the README of nsfwjs: an upload route of Express with multer,
 * jpeg-js and nsfwjs, here with a backend that needs no native TensorFlow. No key, no account, no record, no log. With
 * more than one process, they share the port.
 */
const [backend = 'wasm', decoder = 'jpeg-js', processes = '1'] = process.argv.slice(2)
if (cluster.isPrimary && Number(processes) > 1) await startAll(Number(processes))
else await serve()

async function startAll(count: number) {
  const workers = Array.from({ length: count }, () => cluster.fork())
  const addresses = await Promise.all(
    workers.map((worker) => new Promise<AddressInfo>((resolve) => worker.once('listening', resolve as () => void))),
  )
  process.once('SIGTERM', () => {
    for (const worker of workers) worker.process.kill()
    process.exit()
  })
  report(addresses[0]?.port ?? 0)
}

function report(port: number) {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}/scan` })}\n`)
}

async function serve() {
  if (!(await tf.setBackend(backend))) throw new Error(`There is no backend ${backend}`)
  const model = await load('MobileNetV2')
  const decode = decoder === 'sharp' ? decodeWithSharp : decodeWithJpegJs
  const upload = multer({ storage: multer.memoryStorage() })
  const app = express()

  app.post('/scan', upload.single('file'), async (request, response) => {
    const image = await decode(request.file?.buffer ?? Buffer.alloc(0))
    try {
      response.status(201).json({ backend: tf.getBackend(), predictions: await model.classify(image) })
    } finally {
      image.dispose()
    }
  })

  const server = app.listen(0, '127.0.0.1', () => {
    if (cluster.isPrimary) report((server.address() as AddressInfo).port)
  })
  // During inference the process reads nothing, and would close busy connections as idle.
  server.keepAliveTimeout = 0
}

async function decodeWithJpegJs(bytes: Buffer) {
  const { width, height, data } = jpeg.decode(bytes, { useTArray: true, maxMemoryUsageInMB: 4096 })
  const pixels = width * height
  const values = new Int32Array(pixels * 3)
  for (let i = 0; i < pixels; i++) {
    for (let c = 0; c < 3; c++) values[i * 3 + c] = data[i * 4 + c] ?? 0
  }
  return tf.tensor3d(values, [height, width, 3], 'int32')
}

async function decodeWithSharp(bytes: Buffer) {
  const { data, info } = await sharp(bytes)
    .removeAlpha()
    .toColourspace('srgb')
    .raw()
    .toBuffer({ resolveWithObject: true })
  return tf.tensor3d(new Int32Array(data), [info.height, info.width, 3], 'int32')
}
