import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, context, type ContextManager, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import { readableSpan, type ReportedSpan, reportedSpan } from './reported-span.ts';

export interface TracingOptions {
  /** `service.name`: `temper-gateway`, `temper`. */
  service: string;
  version: string;
  /** Full URL of the traces endpoint of an OTLP/HTTP collector. Absent: nothing is traced and nothing is loaded. */
  endpoint?: string | undefined;
  /** Share of new traces that are kept, 0 to 1; a trace begun elsewhere follows its beginning. Default 1. */
  sampleRatio?: number | undefined;
  /** Read at each export, so that a token may change. */
  headers?: () => Promise<Record<string, string>>;
  attributes?: Readonly<Record<string, string>>;
  /** Told when the collector begins to take nothing; again only after it took something. */
  failed?: (error: unknown) => void;
}

/** Where the spans of another process go, whose resource they are given. */
export type SpanSink = (spans: readonly ReportedSpan[], resource: Readonly<Record<string, string>>) => void;

/** Ends by sending what is left. A collector that does not answer costs spans, never work. */
export interface Tracing extends AsyncDisposable {
  /** Undefined when nothing is traced. */
  readonly take: SpanSink | undefined;
}

const REPORTED_SCOPE = 'temper-reported';
/** A collector that is away must not hold up the end of a process for longer. */
const EXPORT_MILLISECONDS = 5_000;

/** Sends spans of this process, and those it takes in for others, to a collector. */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  const { endpoint, service, version, sampleRatio = 1, headers, attributes = {} } = options;
  if (endpoint === undefined) return { take: undefined, [Symbol.asyncDispose]: async () => {} };
  const [{ OTLPTraceExporter }, sdk, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
  ]);
  const timeoutMillis = EXPORT_MILLISECONDS;
  const exporter = new OTLPTraceExporter({
    url: endpoint,
    timeoutMillis,
    ...(headers === undefined ? {} : { headers }),
  });
  const batches = new sdk.BatchSpanProcessor({
    exporter: telling(exporter, options.failed ?? (() => undefined)),
    exportTimeoutMillis: EXPORT_MILLISECONDS,
  });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ ...attributes, 'service.name': service, 'service.version': version }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: [batches],
  });
  const registered = register(provider);
  return {
    take(spans, resource) {
      const theirs = resourceFromAttributes({ ...resource, 'service.version': version });
      for (const span of spans) batches.onEnd(readableSpan(span, theirs, REPORTED_SCOPE));
    },
    async [Symbol.asyncDispose]() {
      registered[Symbol.dispose]();
      // What the last export fails of has been told.
      await provider.shutdown().catch(() => undefined);
    },
  };
}

/** The exporter, and whoever wants to know how it does. */
function telling(exporter: SpanExporter, failed: (error: unknown) => void): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const code: number = result.code;
        const isFailure = code !== 0;
        if (isFailure && !isFailing) failed(result.error);
        isFailing = isFailure;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/**
 * Gives every span that ends to `ended`. Never begins a trace: only what a sampled parent asks for is recorded.
 */
export async function startReporting(ended: (span: ReportedSpan) => void): Promise<Disposable> {
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

/** What a process has one of. A second one beside it records nothing of its own; that is for tests with several roles in one. */
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
