import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, context, type ContextManager, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import { readableSpan, type ReportedSpan, reportedSpan } from './reported-span.ts';

export interface TracingOptions {
  /** `service.name`: `temper-gateway`, `temper`. */
  service: string;
  version: string;
  /** Full URL of the traces endpoint of an OTLP/HTTP collector. When absent, tracing is off and the SDK is not loaded. */
  endpoint?: string | undefined;
  /** The share of new traces that are sampled, 0 to 1; a trace started elsewhere keeps its sampling decision. Default 1. */
  sampleRatio?: number | undefined;
  /** Called at each export, so that a token may be rotated. */
  headers?: () => Promise<Record<string, string>>;
  attributes?: Readonly<Record<string, string>>;
  /** Called when exports start to fail; called again only after an export succeeded. */
  onExportError?: (error: unknown) => void;
}

/** Accepts spans of another process, together with the resource attributes of that process. */
export type SpanSink = (spans: readonly ReportedSpan[], resource: Readonly<Record<string, string>>) => void;

/** Disposing it exports the remaining spans. An unavailable collector loses spans, but never blocks work. */
export interface Tracing extends AsyncDisposable {
  /** Undefined when tracing is off. */
  readonly acceptSpans: SpanSink | undefined;
}

const REPORTED_SCOPE = 'temper-reported';
/** Also the longest time for which an unavailable collector delays the shutdown of a process. */
const EXPORT_TIMEOUT_MS = 5_000;

/** Exports the spans of this process, and spans reported by other processes, to a collector. */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  const { endpoint, service, version, sampleRatio = 1, headers, attributes = {} } = options;
  if (endpoint === undefined) return { acceptSpans: undefined, [Symbol.asyncDispose]: async () => {} };
  const [{ OTLPTraceExporter }, sdk, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
  ]);
  const timeoutMillis = EXPORT_TIMEOUT_MS;
  const exporter = new OTLPTraceExporter({
    url: endpoint,
    timeoutMillis,
    ...(headers === undefined ? {} : { headers }),
  });
  const failures = new ExportFailures(options.onExportError ?? (() => undefined));
  const batches = new sdk.BatchSpanProcessor({
    exporter: withFailureReport(exporter, failures),
    exportTimeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ ...attributes, 'service.name': service, 'service.version': version }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: [batches],
  });
  const registered = register(provider);
  return {
    acceptSpans(spans, resource) {
      const reportedResource = resourceFromAttributes({ ...resource, 'service.version': version });
      for (const span of spans) batches.onEnd(readableSpan(span, reportedResource, REPORTED_SCOPE));
    },
    async [Symbol.asyncDispose]() {
      registered[Symbol.dispose]();
      // Its last export may end later than it waits.
      await provider.shutdown().catch((error: unknown) => failures.failed(error));
    },
  };
}

/** Reports the first of a series of failed exports. */
class ExportFailures {
  readonly #report: (error: unknown) => void;
  #isFailing = false;

  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  failed(error: unknown): void {
    if (!this.#isFailing) this.#report(error);
    this.#isFailing = true;
  }

  succeeded(): void {
    this.#isFailing = false;
  }
}

function withFailureReport(exporter: SpanExporter, failures: ExportFailures): SpanExporter {
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const code: number = result.code;
        if (code === 0) failures.succeeded();
        else failures.failed(result.error);
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/**
 * Calls `ended` with every ended span. Never starts a trace: only children of a sampled parent are recorded.
 */
export async function startSpanReporting(ended: (span: ReportedSpan) => void): Promise<Disposable> {
  const sdk = await import('@opentelemetry/sdk-trace');
  const processor: SpanProcessor = {
    onStart: () => undefined,
    onEnd: (span) => ended(reportedSpan(span)),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  };
  const sampler = new sdk.ParentBasedSampler({ root: new sdk.AlwaysOffSampler() });
  return register(new sdk.TracerProvider({ sampler, spanProcessors: [processor] }));
}

/** Registers the process-wide provider. A second provider in the same process records nothing; tests run several roles in one process. */
function register(provider: Parameters<typeof trace.setGlobalTracerProvider>[0]): Disposable {
  const manager = new AsyncContexts();
  const isFirst = context.setGlobalContextManager(manager);
  if (isFirst) trace.setGlobalTracerProvider(provider);
  return {
    [Symbol.dispose]() {
      if (!isFirst) return;
      trace.disable();
      context.disable();
    },
  };
}

/** The active context follows promises and callbacks. */
class AsyncContexts implements ContextManager {
  readonly #active = new AsyncLocalStorage<Context>();

  active(): Context {
    return this.#active.getStore() ?? ROOT_CONTEXT;
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    active: Context,
    work: F,
    receiver?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#active.run(active, () => work.apply(receiver, args));
  }

  bind<T>(active: Context, target: T): T {
    if (typeof target !== 'function') return target;
    const bound = (...args: unknown[]): unknown => this.#active.run(active, () => target(...args) as unknown);
    return bound as T;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.#active.disable();
    return this;
  }
}
