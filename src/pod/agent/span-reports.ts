import { SerialQueue } from '../../lib/async/serial-queue.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { RemoteDelivery } from '../../gateway-client/bus.ts';
import type { GatewayClient } from '../../gateway-client/gateway-client.ts';
import { POD_API_PATHS, type TracesRequest } from '../../gateway-api/pod-api.ts';
import type { ReportedSpan } from '../../telemetry/reported-span.ts';
import { continueTrace, inSpan, messagingAttributes, SPANS } from '../../telemetry/spans.ts';
import { isSampled, traceIdOf } from '../../telemetry/traceparent.ts';
import { startSpanReporting } from '../../telemetry/tracing.ts';

export interface SpanReportsOptions {
  client: GatewayClient;
  clock: Clock;
  ids: IdGenerator;
  /** Called when spans could not be sent; they are dropped. */
  onError: (error: unknown) => void;
}

/** The messages of one trace that are in work: another agent may send several of one chain. */
interface TracedMessages {
  /** Of the latest one. */
  deliveryToken: string;
  messages: number;
  spans: ReportedSpan[];
}

/** Spans per request. */
const BATCH_SIZE = 100;
/** Limit of unsent spans; further spans are dropped. */
const MAX_UNSENT = 2_000;
const SEND_TIMEOUT_MS = 10_000;
const SHUTDOWN_FLUSH_MS = 2_000;

/**
 * Sends the spans of a message to the gateway, authorized by the delivery token of that message, when the message is sampled.
 * OpenTelemetry is loaded with the first sampled message. Work on a message never waits for its spans to be sent.
 */
export class SpanReports implements AsyncDisposable {
  readonly #options: SpanReportsOptions;
  readonly #lifetime = new AbortController();
  #recording: Promise<Disposable> | undefined;
  readonly #traces = new Map<string, TracedMessages>();
  #unsent = 0;
  readonly #requests = new SerialQueue();

  constructor(options: SpanReportsOptions) {
    this.#options = options;
  }

  /** Runs `work` in a span that is a child of the message's span. */
  async during<T>({ message, token: deliveryToken }: RemoteDelivery, work: () => Promise<T>): Promise<T> {
    const { id, session, root, traceparent } = message;
    const traceId = traceIdOf(traceparent);
    if (traceId === undefined || !isSampled(traceparent)) return work();
    this.#recording ??= startSpanReporting((span) => this.#onSpan(span));
    await this.#recording;
    const trace = this.#traces.get(traceId) ?? { deliveryToken, messages: 0, spans: [] };
    this.#traces.set(traceId, trace);
    trace.deliveryToken = deliveryToken;
    trace.messages += 1;
    const attributes = messagingAttributes('process', 'temper-inbox', { message: id, session, root });
    try {
      return await continueTrace(traceparent, () => inSpan(SPANS.process, { kind: 'CONSUMER', attributes }, work));
    } finally {
      this.#flush(trace);
      trace.messages -= 1;
      if (trace.messages === 0) this.#traces.delete(traceId);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    (await this.#recording)?.[Symbol.dispose]();
    const flushed = new AbortController();
    const timeout = this.#options.clock.sleep(SHUTDOWN_FLUSH_MS, flushed.signal).then(
      () => this.#lifetime.abort(),
      () => undefined,
    );
    await this.#requests.idle();
    flushed.abort();
    await timeout;
  }

  /** A span that ends after the messages of its trace has no delivery that could authorize it. */
  #onSpan(span: ReportedSpan): void {
    const trace = this.#traces.get(span.traceId);
    if (trace === undefined || this.#unsent >= MAX_UNSENT) return;
    this.#unsent += 1;
    trace.spans.push(span);
    if (trace.spans.length >= BATCH_SIZE) this.#flush(trace);
  }

  #flush(trace: TracedMessages): void {
    const { deliveryToken, spans } = trace;
    if (spans.length === 0) return;
    trace.spans = [];
    const body: TracesRequest = { deliveryToken, spans };
    void this.#requests.run(() => this.#send(body));
  }

  async #send(body: TracesRequest): Promise<void> {
    const { client, clock, ids, onError: failed } = this.#options;
    const deadline = clock.monotonic() + SEND_TIMEOUT_MS;
    const op: CallOptions = { signal: this.#lifetime.signal, deadline, key: ids.next('spans') };
    try {
      await client.call({ method: 'POST', path: POD_API_PATHS.traces, body, op });
    } catch (error) {
      failed(error);
    } finally {
      this.#unsent -= body.spans.length;
    }
  }
}
