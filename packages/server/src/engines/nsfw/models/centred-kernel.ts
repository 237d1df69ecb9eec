/** The byte in the middle, which stands for zero in a centred kernel. */
const middle = 128
const greatest = 127

type Kernel = { values: Uint8Array; zero: number; scales: Float64Array }

/**
 * The same kernel with its zero in the middle of the bytes, for which onnxruntime has convolutions that take half the
 * time. Nearly every channel just moves there. Of MobileNetV2Mid 71 in 23,968 reach too far to one side: these are rounded
 * to steps that are wider, the widest by 57 per cent.
 */
export function centreKernel({ values, zero, scales }: Kernel): Kernel {
  const perChannel = values.length / scales.length
  const centred = new Uint8Array(values.length)
  const wider = scales.map((scale, channel) => {
    const [start, end] = [channel * perChannel, (channel + 1) * perChannel]
    let reach = greatest
    for (let i = start; i < end; i++) reach = Math.max(reach, Math.abs((values[i] as number) - zero))
    const step = reach / greatest
    for (let i = start; i < end; i++) centred[i] = Math.round(((values[i] as number) - zero) / step) + middle
    return scale * step
  })
  return { values: centred, zero: middle, scales: wider }
}
