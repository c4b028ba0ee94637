import type { Clock } from '../../lib/clock.ts';
import type { Ids } from '../../lib/ids.ts';
import type { Op } from '../../lib/operation.ts';
import type { RemoteDelivery } from '../../remote/bus.ts';
import type { GatewayClient } from '../../remote/gateway-client.ts';
import { PATHS, type TracesRequest } from '../../remote/wire.ts';
import type { ReportedSpan } from '../../telemetry/reported-span.ts';
import { continuingTrace, inSpan, messagingAttributes, SPANS } from '../../telemetry/spans.ts';
import { isSampled } from '../../telemetry/traceparent.ts';
import { startReporting } from '../../telemetry/tracing.ts';

export interface SpanReportsOptions {
  client: GatewayClient;
  clock: Clock;
  ids: Ids;
  /** Called when spans could not be sent; they are dropped. */
  failed: (error: unknown) => void;
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
  #recording: Disposable | undefined;
  #deliveryToken = '';
  #spans: ReportedSpan[] = [];
  #unsent = 0;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: SpanReportsOptions) {
    this.#options = options;
  }

  /** Runs `work` in a span that is a child of the message's span. */
  async during<T>({ message, lease }: RemoteDelivery, work: () => Promise<T>): Promise<T> {
    const { id, session, root, traceparent } = message;
    if (!isSampled(traceparent)) return work();
    this.#recording ??= await startReporting((span) => this.#onSpan(span));
    this.#deliveryToken = lease;
    const attributes = messagingAttributes('process', 'temper-inbox', { message: id, session, root });
    try {
      return await continuingTrace(traceparent, () => inSpan(SPANS.process, { kind: 'CONSUMER', attributes }, work));
    } finally {
      this.#flush();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#recording?.[Symbol.dispose]();
    const flushed = new AbortController();
    const timeout = this.#options.clock.sleep(SHUTDOWN_FLUSH_MS, flushed.signal).then(
      () => this.#lifetime.abort(),
      () => undefined,
    );
    await this.#sending;
    flushed.abort();
    await timeout;
  }

  #onSpan(span: ReportedSpan): void {
    if (this.#unsent >= MAX_UNSENT) return;
    this.#unsent += 1;
    this.#spans.push(span);
    if (this.#spans.length >= BATCH_SIZE) this.#flush();
  }

  #flush(): void {
    const spans = this.#spans;
    if (spans.length === 0) return;
    this.#spans = [];
    const body: TracesRequest = { lease: this.#deliveryToken, spans };
    this.#sending = this.#sending.then(() => this.#send(body));
  }

  async #send(body: TracesRequest): Promise<void> {
    const { client, clock, ids, failed } = this.#options;
    const deadline = clock.monotonic() + SEND_TIMEOUT_MS;
    const op: Op = { signal: this.#lifetime.signal, deadline, key: ids.next('spans') };
    try {
      await client.call({ method: 'POST', path: PATHS.traces, body, op });
    } catch (error) {
      failed(error);
    } finally {
      this.#unsent -= body.spans.length;
    }
  }
}
