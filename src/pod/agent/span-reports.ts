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
  /** Told what kept spans from being taken; they are lost then. */
  failed: (error: unknown) => void;
}

/** Spans of one report. */
const BATCH = 100;
/** More than this of one message that nobody took is left out. */
const MOST = 2_000;
const SEND_MILLISECONDS = 10_000;
const LAST_MILLISECONDS = 2_000;

/**
 * What this pod records of its work on a message, when the delivery asks for it, told to the gateway under the lease of that message.
 * Until the first such delivery nothing is loaded. Work never waits for a report.
 */
export class SpanReports implements AsyncDisposable {
  readonly #options: SpanReportsOptions;
  readonly #lifetime = new AbortController();
  #reporting: Disposable | undefined;
  #lease = '';
  #spans: ReportedSpan[] = [];
  #waiting = 0;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: SpanReportsOptions) {
    this.#options = options;
  }

  /** Does the work on a delivery as a span below it. */
  async during<T>({ message, lease }: RemoteDelivery, work: () => Promise<T>): Promise<T> {
    const { id, session, root, traceparent } = message;
    if (!isSampled(traceparent)) return work();
    this.#reporting ??= await startReporting((span) => this.#take(span));
    this.#lease = lease;
    const attributes = messagingAttributes('process', 'temper-inbox', { message: id, session, root });
    try {
      return await continuingTrace(traceparent, () => inSpan(SPANS.process, { kind: 'CONSUMER', attributes }, work));
    } finally {
      this.#report();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#reporting?.[Symbol.dispose]();
    const over = new AbortController();
    const late = this.#options.clock.sleep(LAST_MILLISECONDS, over.signal).then(
      () => this.#lifetime.abort(),
      () => undefined,
    );
    await this.#sending;
    over.abort();
    await late;
  }

  #take(span: ReportedSpan): void {
    if (this.#waiting >= MOST) return;
    this.#waiting += 1;
    this.#spans.push(span);
    if (this.#spans.length >= BATCH) this.#report();
  }

  #report(): void {
    const spans = this.#spans;
    if (spans.length === 0) return;
    this.#spans = [];
    const body: TracesRequest = { lease: this.#lease, spans };
    this.#sending = this.#sending.then(() => this.#send(body));
  }

  async #send(body: TracesRequest): Promise<void> {
    const { client, clock, ids, failed } = this.#options;
    const deadline = clock.monotonic() + SEND_MILLISECONDS;
    const op: Op = { signal: this.#lifetime.signal, deadline, key: ids.next('spans') };
    try {
      await client.call({ method: 'POST', path: PATHS.traces, body, op });
    } catch (error) {
      failed(error);
    } finally {
      this.#waiting -= body.spans.length;
    }
  }
}
