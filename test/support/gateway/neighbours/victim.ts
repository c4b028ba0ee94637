import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createNatsAudit } from '../../../../src/nats/audit.ts';
import type { SessionStreamLine, UsageReport } from '../../../../src/gateway-api/user-api.ts';
import type { GatewayFixture, HttpResponse } from '../gateway-fixture.ts';
import { USAGE_PER_CALL } from './models.ts';
import type { Tenant } from './tenant.ts';

/** Keeps the victim below its own limit of requests per second. */
const MIN_ROUND_MS = 200;
const MAX_AUDIT_RECORDS = 100_000;
/** The event loop of the gateway is late, as on a slow machine. Every other 503 is of a limit that an attacker has used up. */
const BUSY = '"message":"the gateway is overloaded"';

/** The requests of one message. */
export type VictimStep = 'deliver' | 'model' | 'report' | 'search' | 'items' | 'end';

/** An agent that works, and notices when a call of it is refused, a record is lost, or it is charged for others. */
export class Victim {
  readonly tenant: Tenant;
  /** Milliseconds of each message, from its user's request to its acknowledgement. */
  readonly times: number[] = [];
  /** Milliseconds of each request of the messages, by its step. */
  readonly steps = new Map<VictimStep, number[]>();
  readonly #fixture: GatewayFixture;
  #started = 0;
  #checked = 0;

  constructor(tenant: Tenant, fixture: GatewayFixture) {
    this.tenant = tenant;
    this.#fixture = fixture;
  }

  /** Works on messages until `isOver`, at least on `minRounds`. */
  async work(minRounds: number, isOver: () => boolean): Promise<void> {
    for (let round = 0; round < minRounds || !isOver(); round += 1) {
      await Promise.all([this.#round(), sleep(MIN_ROUND_MS)]);
    }
  }

  /** One message: sent by a user, received, answered by a model, reported about, kept in the session and acknowledged. */
  async #round(): Promise<void> {
    this.#started += 1;
    const name = nameOf(this.#started);
    const start = performance.now();
    const { deliveryToken } = await this.#timed('deliver', () => this.tenant.deliver(name));
    const request = {
      model: 'default/default',
      system: '',
      messages: [{ role: 'user', text: name }],
      tools: [],
      maxOutputTokens: 100,
    };
    const answer = await this.#timed('model', () =>
      this.#call('POST', '/v1/models/stream', { deliveryToken, request }),
    );
    assert.match(answer, /"type":"end"/);
    const record = { action: 'victim.worked', actor: '', evidence: 'reported', subject: name, facts: {} };
    await this.#timed('report', () => this.#call('POST', '/v1/reports', { audit: [record] }, `report-${name}`));
    const found = await this.#timed('search', () =>
      this.#call('POST', '/v1/discovery/search', { deliveryToken, query: 'file' }),
    );
    assert.match(found, /file_/);
    const items = [{ role: 'user', text: name }];
    const path = `/v1/sessions/${name}/items`;
    await this.#timed('items', () => this.#call('POST', path, { deliveryToken, afterSeq: 0, items }, `items-${name}`));
    const outcome = { deliveryToken, action: 'ack', reply: `reply of ${name}`, finishReason: 'complete' };
    await this.#timed('end', () => this.#call('POST', '/v1/deliveries', outcome, `ack-${name}`));
    this.times.push(performance.now() - start);
  }

  async #timed<T>(step: VictimStep, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    const result = await work();
    this.steps.set(step, [...(this.steps.get(step) ?? []), performance.now() - start]);
    return result;
  }

  async #call(method: string, path: string, body?: object, key?: string): Promise<string> {
    const options = { ...(body === undefined ? {} : { body }), ...(key === undefined ? {} : { key }) };
    return this.#assertServed(path, await this.tenant.patiently(() => this.tenant.call(method, path, options)));
  }

  #assertServed(path: string, { status, text }: HttpResponse): string {
    assert.ok(status === 200 || status === 204, `the victim was refused at ${path}: ${status} ${text}`);
    return text;
  }

  /** Asserts that the reply, the history and the audit record of every message of the last attack exist, once, and nothing else. */
  async assertRecords(): Promise<void> {
    const names = Array.from({ length: this.#started }, (_, index) => nameOf(index + 1));
    const fresh = names.slice(this.#checked);
    // Its own later records may have removed those of earlier attacks.
    const earlier = new Set(names.slice(0, this.#checked));
    const audit = await createNatsAudit(await this.#fixture.nats.connect('gateway')).all(
      this.tenant.namespace,
      MAX_AUDIT_RECORDS,
    );
    assert.deepEqual(
      audit.flatMap(({ action, subject }) => (earlier.has(subject) ? [] : [`${action} ${subject}`])).toSorted(),
      fresh.map((name) => `victim.worked ${name}`).toSorted(),
    );
    for (const name of fresh) await this.#assertSession(name);
    this.#checked = names.length;
    await this.#assertCharged();
  }

  async #assertSession(name: string): Promise<void> {
    const path = `/agents/${this.tenant.name}/sessions/${name}/events`;
    const events = this.#assertServed(path, await this.tenant.patiently(() => this.tenant.userCall('GET', path)));
    const lines = events.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as SessionStreamLine]));
    assert.deepEqual(
      lines.map((line) => ('text' in line ? line.text : line.kind)),
      [`reply of ${name}`],
    );
    assert.match(await this.#call('GET', `/v1/sessions/${name}`), new RegExp(`"text":"${name}"`));
  }

  /** Asserts that the gateway had a place for each request of the victim: only its event loop may have been late. */
  assertOnlyBusy(): void {
    assert.deepEqual(
      this.tenant.unserved.filter((text) => !text.includes(BUSY)),
      [],
    );
  }

  /** Each message is charged once. */
  async #assertCharged(): Promise<void> {
    const path = `/agents/${this.tenant.name}/usage`;
    const text = this.#assertServed(path, await this.tenant.patiently(() => this.tenant.userCall('GET', path)));
    const day = (JSON.parse(text) as UsageReport).windows.find(({ window }) => window === 'day');
    const most = USAGE_PER_CALL.inputTokens * this.times.length;
    // After midnight a new day is charged.
    assert.ok(
      (day?.inputTokens ?? 0) <= most,
      `the victim was charged ${day?.inputTokens} input tokens, and used ${most}`,
    );
  }
}

function nameOf(index: number): string {
  return `round-${index}`;
}
