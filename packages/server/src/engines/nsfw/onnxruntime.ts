// The only place that loads onnxruntime: its telemetry must be off before.
import './no-telemetry.ts'

export { env, InferenceSession, Tensor } from 'onnxruntime-node'
