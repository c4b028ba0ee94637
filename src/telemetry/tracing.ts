export interface TracingOptions {
  /** `service.name`: `temper-operator`, `temper-gateway`, `temper-agent`, `temper`. */
  service: string;
  version: string;
  /** Full URL of the traces endpoint of an OTLP/HTTP collector. Absent: nothing is traced and nothing is loaded. */
  endpoint?: string;
  /** Share of new traces that are kept, 0 to 1; a trace begun elsewhere follows its beginning. Default 1. */
  sampleRatio?: number;
  /** Read at each export, so that a token may change. */
  headers?: () => Promise<Record<string, string>>;
  attributes?: Readonly<Record<string, string>>;
}

/** Sends spans to a collector until it is disposed of, which flushes them. A collector that does not answer costs spans, never work. */
export async function startTracing(options: TracingOptions): Promise<AsyncDisposable> {
  const { endpoint, service, version, sampleRatio = 1, headers, attributes = {} } = options;
  if (endpoint === undefined) return { [Symbol.asyncDispose]: async () => {} };
  const [{ NodeSDK }, { OTLPTraceExporter }, trace, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/sdk-node'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
  ]);
  const exporter = new OTLPTraceExporter({ url: endpoint, ...(headers === undefined ? {} : { headers }) });
  const sdk = new NodeSDK({
    resource: resourceFromAttributes({ ...attributes, 'service.name': service, 'service.version': version }),
    autoDetectResources: false,
    instrumentations: [],
    sampler: new trace.ParentBasedSampler({ root: new trace.TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: [new trace.BatchSpanProcessor({ exporter })],
  });
  sdk.start();
  return { [Symbol.asyncDispose]: () => sdk.shutdown() };
}
