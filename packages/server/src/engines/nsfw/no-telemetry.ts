// onnxruntime reports to its vendor unless this is set when it is loaded. Image processes get it from their launch too.
process.env.ORT_DISABLE_TELEMETRY = '1'
