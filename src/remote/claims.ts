import type { Audit, AuditRecord } from '../audit/port.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, messageOf } from '../lib/errors.ts';
import type { Ids } from '../lib/ids.ts';
import type { Json } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import type { ToolUse } from '../tempering/types.ts';
import type { StampedEvent } from '../tools/events.ts';
import type { GatewayClient } from './gateway-client.ts';
import { type Claims as WireClaims, PATHS } from './wire.ts';

export interface ClaimsOptions {
  client: GatewayClient;
  clock: Clock;
  ids: Ids;
  /** Told when claims could not be sent for now, or were left out for good. */
  onTrouble: (problem: string) => void;
}

/** How long claims are collected before they are sent, in milliseconds: soon enough for a person who watches. */
const COLLECT_MILLISECONDS = 150;
const BATCH_ITEMS = 200;
const BATCH_BYTES = 131_072;
/** Beyond this nothing more is kept of events; records and uses are kept twice as long. */
const KEPT_BYTES = 4_194_304;
/** Largest claim. A larger event is told without its content, a larger use is in the record of its call alone. */
const CLAIM_BYTES = 49_152;
const SEND_MILLISECONDS = 30_000;
/** It breaks the schema, is too large, or cannot be done. */
const REFUSED: ReadonlySet<unknown> = new Set([400, 413, 422]);

type Kind = keyof WireClaims;

interface Batch {
  key: string;
  claims: Required<WireClaims>;
  items: number;
  bytes: number;
}

/** What the pod says of itself, in order and in batches. Nothing in it is believed, so nothing waits for it but the end of a message. */
export class Claims implements AsyncDisposable {
  readonly #options: ClaimsOptions;
  readonly #lifetime = new AbortController();
  readonly #batches: Batch[] = [];
  #bytes = 0;
  #left = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  readonly audit: Audit = {
    append: async (record: AuditRecord) => this.#add('audit', { ...record, evidence: 'claimed' }, 2 * KEPT_BYTES),
  };

  event(event: StampedEvent): void {
    this.#add('events', withoutBulk(event), KEPT_BYTES);
  }

  use(use: ToolUse): void {
    this.#add('uses', { ...use, evidence: 'claimed' }, 2 * KEPT_BYTES);
  }

  /** Resolves when everything claimed so far was taken. Throws what kept it from being sent; it is kept then. */
  async flush(op: Op): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const sending = this.#sending.then(() => this.#sendAll(op));
    this.#sending = sending.catch(() => undefined);
    await sending;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    this.#lifetime.abort();
    await this.#sending;
  }

  #add(kind: Kind, claim: StampedEvent | AuditRecord | ToolUse, room: number): void {
    const bytes = Buffer.byteLength(JSON.stringify(claim));
    if (bytes > CLAIM_BYTES || this.#bytes + bytes > room) {
      this.#leave(kind, bytes);
      return;
    }
    const batch = this.#batchFor(bytes);
    (batch.claims[kind] as object[]).push(claim);
    batch.items += 1;
    batch.bytes += bytes;
    this.#bytes += bytes;
    this.#timer ??= setTimeout(() => this.#sendSoon(), COLLECT_MILLISECONDS);
  }

  /** The last one while it has room and was not sent yet: a batch under a key never changes. */
  #batchFor(bytes: number): Batch {
    const last = this.#batches.at(-1);
    if (last?.key === '' && last.items < BATCH_ITEMS && last.bytes + bytes <= BATCH_BYTES) return last;
    const batch: Batch = { key: '', claims: { events: [], audit: [], uses: [] }, items: 0, bytes: 0 };
    this.#batches.push(batch);
    return batch;
  }

  #sendSoon(): void {
    const { clock, ids, onTrouble } = this.#options;
    const deadline = clock.monotonic() + SEND_MILLISECONDS;
    const op: Op = { signal: this.#lifetime.signal, deadline, key: ids.next('claims') };
    this.flush(op).catch((error: unknown) => {
      if (!this.#lifetime.signal.aborted) onTrouble(`claims are kept for later: ${messageOf(error, 200)}`);
    });
  }

  async #sendAll(op: Op): Promise<void> {
    for (let batch = this.#batches[0]; batch !== undefined; batch = this.#batches[0]) {
      if (batch.key === '') batch.key = this.#options.ids.next('claims');
      const { key, claims, bytes, items } = batch;
      try {
        await this.#options.client.call({ method: 'POST', path: PATHS.claims, body: claims, op: { ...op, key } });
      } catch (error) {
        if (!isRefusedForGood(error)) throw error;
        this.#options.onTrouble(`${items} claims were refused and are left out: ${messageOf(error, 200)}`);
      }
      this.#batches.shift();
      this.#bytes -= bytes;
    }
  }

  #leave(kind: Kind, bytes: number): void {
    this.#left += 1;
    // Once for each power of two: a flood must not become one of log lines.
    if (!Number.isInteger(Math.log2(this.#left))) return;
    const why = bytes > CLAIM_BYTES ? `takes at most ${CLAIM_BYTES}` : 'finds no room while the gateway is away';
    this.#options.onTrouble(
      `claims left out so far: ${this.#left}; the last is of ${bytes} bytes in ${kind}, and ${why}`,
    );
  }
}

/** The gateway understood and will say the same again. A pod that is not known, or not let in, at this moment may be later. */
function isRefusedForGood(error: unknown): boolean {
  if (!isTemperError(error)) return false;
  const { status } = error.details;
  return status === 403 ? error.code === 'TEMPER_POLICY_DENIED' : REFUSED.has(status);
}

/** What a tool was given may be a whole file; the transcript tells that it was large. */
function withoutBulk(event: StampedEvent): StampedEvent {
  if (event.type !== 'tool-call') return event;
  const bytes = Buffer.byteLength(JSON.stringify(event.input));
  const input: Json = bytes > CLAIM_BYTES / 2 ? { omitted: `${bytes} bytes` } : event.input;
  return { ...event, input };
}
