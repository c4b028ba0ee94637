import type { Audit, AuditRecord } from '../audit/port.ts';
import { SerialQueue } from '../lib/async/serial-queue.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, messageOf } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { ToolCalls } from '../tempering/hygiene/tool-calls.ts';
import type { ToolUse } from '../tempering/types.ts';
import type { StampedEvent } from '../tools/events.ts';
import type { GatewayClient } from './gateway-client.ts';
import { type PodReports, POD_API_PATHS } from '../gateway-api/pod-api.ts';

export interface ReportSenderOptions {
  client: GatewayClient;
  clock: Clock;
  ids: IdGenerator;
  /** The delivery token of the message in progress; undefined without one. */
  deliveryToken: () => string | undefined;
  /** The signatures of answers that the gateway carried for this message. */
  answerSignatures?: () => readonly string[];
  /** Called when reports could not be sent yet, or were dropped. */
  onError: (problem: string) => void;
}

/** Batching delay in milliseconds: short enough for a user who follows the session. */
const BATCH_DELAY_MS = 150;
const MAX_BATCH_ITEMS = 200;
const MAX_BATCH_BYTES = 131_072;
/** Buffer limit for events; audit records and uses may fill twice as much. */
const MAX_BUFFERED_BYTES = 4_194_304;
/** Limit of one report. A larger one is dropped; the input of a large `tool-call` event is omitted first. */
const MAX_REPORT_BYTES = 49_152;
/** Uses have their inputs and recordings, which a verifier runs again. */
const MAX_USE_BYTES = 262_144;
const SEND_TIMEOUT_MS = 30_000;
/** Permanent failures: invalid by the schema, too large, or unprocessable. */
const PERMANENT_STATUSES: ReadonlySet<unknown> = new Set([400, 413, 422]);

type ReportKind = Exclude<keyof PodReports, 'deliveryToken' | 'answerSignatures' | 'toolCalls'>;

/** Reports that the end of a message carries. */
export interface LastReports {
  /** Their idempotency key. */
  key: string;
  batch: PodReports;
  /** Confirms that the gateway has them. Without it they stay buffered. */
  accepted: () => void;
}

interface ReportBatch {
  key: string;
  reports: Required<Pick<PodReports, ReportKind>> & Omit<PodReports, ReportKind>;
  items: number;
  bytes: number;
}

/** Sends the pod's reports about itself, in order and in batches. The gateway does not trust them, so only the end of a message waits for them. */
export class ReportSender implements AsyncDisposable {
  readonly #options: ReportSenderOptions;
  readonly #lifetime = new AbortController();
  readonly #batches: ReportBatch[] = [];
  #bytes = 0;
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #requests = new SerialQueue();

  constructor(options: ReportSenderOptions) {
    this.#options = options;
  }

  readonly audit: Audit = {
    append: async (record: AuditRecord) =>
      this.#add('audit', { ...record, evidence: 'reported' }, 2 * MAX_BUFFERED_BYTES),
  };

  event(event: StampedEvent): void {
    this.#add('events', truncateInput(event), MAX_BUFFERED_BYTES);
  }

  use(use: ToolUse): void {
    this.#add('uses', { ...withinReport(use), evidence: 'reported' }, 2 * MAX_BUFFERED_BYTES);
  }

  /** The calls of forged tools for the delivery so far. They count when the pod ends before the message does; the end has them too. */
  calls(toolCalls: readonly ToolCalls[]): void {
    this.#batchFor(0).reports.toolCalls = [...toolCalls];
    this.#startTimer();
  }

  /** Resolves when the gateway accepted all reports so far. Throws the failure of the request; the reports stay buffered then. */
  async flush(op: CallOptions): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#requests.run(() => this.#sendAll(op));
  }

  /** The reports for the end of a message, after all earlier ones were sent. Throws like `flush`. */
  async last(op: CallOptions): Promise<LastReports | undefined> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#requests.run(() => this.#sendAll(op, 1));
    const [batch] = this.#batches;
    if (batch === undefined) return undefined;
    if (batch.key === '') batch.key = this.#options.ids.next('reports');
    const { key, reports } = batch;
    return { key, batch: reports, accepted: () => this.#remove(batch) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    this.#lifetime.abort();
    await this.#requests.idle();
  }

  #add(kind: ReportKind, report: StampedEvent | AuditRecord | ToolUse, limit: number): void {
    const bytes = Buffer.byteLength(JSON.stringify(report));
    if (bytes > maxBytesOf(kind) || this.#bytes + bytes > limit) {
      this.#drop(kind, bytes);
      return;
    }
    const batch = this.#batchFor(bytes);
    (batch.reports[kind] as object[]).push(report);
    const signatures = kind === 'uses' ? (this.#options.answerSignatures?.() ?? []) : [];
    if (signatures.length > 0) batch.reports.answerSignatures = [...signatures];
    batch.items += 1;
    batch.bytes += bytes;
    this.#bytes += bytes;
    this.#startTimer();
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(() => this.#sendBatches(), BATCH_DELAY_MS);
  }

  /**
   * The last batch while it is of the same message, below its limits and was not sent yet: a batch with a key never changes.
   */
  #batchFor(bytes: number): ReportBatch {
    const last = this.#batches.at(-1);
    const deliveryToken = this.#options.deliveryToken();
    const isOpen = last?.key === '' && last.reports.deliveryToken === deliveryToken;
    if (isOpen && last.items < MAX_BATCH_ITEMS && last.bytes + bytes <= MAX_BATCH_BYTES) return last;
    const reports = { ...(deliveryToken === undefined ? {} : { deliveryToken }), events: [], audit: [], uses: [] };
    const batch: ReportBatch = { key: '', reports, items: 0, bytes: 0 };
    this.#batches.push(batch);
    return batch;
  }

  #sendBatches(): void {
    const { clock, ids, onError } = this.#options;
    const deadline = clock.monotonic() + SEND_TIMEOUT_MS;
    const op: CallOptions = { signal: this.#lifetime.signal, deadline, key: ids.next('reports') };
    this.flush(op).catch((error: unknown) => {
      if (!this.#lifetime.signal.aborted)
        onError(`reports are buffered until the gateway accepts them: ${messageOf(error, 200)}`);
    });
  }

  async #sendAll(op: CallOptions, kept = 0): Promise<void> {
    for (let batch = this.#batches[0]; batch !== undefined; batch = this.#batches[0]) {
      if (this.#batches.length <= kept) return;
      if (batch.key === '') batch.key = this.#options.ids.next('reports');
      const { key, reports, items } = batch;
      try {
        await this.#options.client.call({
          method: 'POST',
          path: POD_API_PATHS.reports,
          body: reports,
          op: { ...op, key },
        });
      } catch (error) {
        if (!isPermanentFailure(error)) throw error;
        this.#options.onError(`${items} reports were refused and dropped: ${messageOf(error, 200)}`);
      }
      this.#remove(batch);
    }
  }

  #remove(batch: ReportBatch): void {
    const index = this.#batches.indexOf(batch);
    if (index === -1) return;
    this.#batches.splice(index, 1);
    this.#bytes -= batch.bytes;
  }

  #drop(kind: ReportKind, bytes: number): void {
    this.#dropped += 1;
    // Reports only powers of two: many dropped reports must not cause as many log lines.
    if (!Number.isInteger(Math.log2(this.#dropped))) return;
    const limit = maxBytesOf(kind);
    const reason = bytes > limit ? `exceeds the limit of ${limit} bytes` : 'does not fit into the buffer';
    this.#options.onError(
      `reports dropped so far: ${this.#dropped}; the last one, ${bytes} bytes in ${kind}, ${reason}`,
    );
  }
}

/** A repeated request would get the same response. A pod that is unknown or refused now may be accepted later. */
function isPermanentFailure(error: unknown): boolean {
  if (!isTemperError(error)) return false;
  const { status } = error.details;
  return status === 403 ? error.code === 'TEMPER_POLICY_DENIED' : PERMANENT_STATUSES.has(status);
}

/** A use counts also without its recording. */
function withinReport(use: ToolUse): ToolUse {
  if (use.recording?.ok !== true || Buffer.byteLength(JSON.stringify(use)) <= MAX_USE_BYTES) return use;
  return { ...use, recording: { ok: false, reason: 'RecordingTooLarge' } };
}

function maxBytesOf(kind: ReportKind): number {
  return kind === 'uses' ? MAX_USE_BYTES : MAX_REPORT_BYTES;
}

/** Replaces a large tool input, such as a whole file, by its size. */
function truncateInput(event: StampedEvent): StampedEvent {
  if (event.type !== 'tool-call') return event;
  const bytes = Buffer.byteLength(JSON.stringify(event.input));
  const input: Json = bytes > MAX_REPORT_BYTES / 2 ? { omitted: `${bytes} bytes` } : event.input;
  return { ...event, input };
}
