import { DELIVERY_TOKEN_HEADER } from '../../src/gateway-api/pod-api.ts';
import { flood } from '../../test/support/gateway/neighbours/flood.ts';
import { MAX_RESIDENT_MIB, NoisyNeighbours } from '../../test/support/gateway/neighbours/noisy-neighbours.ts';
import type { Tenant } from '../../test/support/gateway/neighbours/tenant.ts';
import { quantile } from '../baseline/baseline.ts';
import { atMost, milliseconds, plain, type Row, times } from './row.ts';

/** Messages of the victim per part. Parts without an attack alternate with those under one. */
const ROUNDS = 30;
const MAX_RATIO = 3;
/** Calls of an attacker that it makes in one go, and how many at a time. */
const CALLS = 64;
const CONCURRENCY = 16;

/** Makes calls of one kind, again and again, until the victim has finished. `index` never repeats. */
type Attack = (attacker: Tenant, deliveryToken: string) => (index: number) => Promise<{ status: number }>;

const WORDS = Array.from({ length: 340 }, (_, index) => `w${index}`).join(' ');
const QUERY = WORDS.slice(0, 1_024);
const SMALL_VALUES = `{"deliveryToken":"bad","afterSeq":0,"items":[${'[],'.repeat(600_000)}[]]}`;
const RECORD = { action: 'noise', actor: '', evidence: 'reported', subject: 's', facts: { text: 'x'.repeat(15_000) } };
const EVENT = { time: '2026-01-01T00:00:00.000Z', type: 'message', text: 'x'.repeat(10_000), delta: true };

const ATTACKS: Readonly<Record<string, Attack>> = {
  'bodies of small values': (attacker) => (index) =>
    attacker.call('POST', '/v1/sessions/s/items', { body: SMALL_VALUES, key: `values-${index}` }),
  'large bodies': (attacker) => (index) => {
    const body = { deliveryToken: 'bad', afterSeq: 0, items: [{ role: 'user', text: 'x'.repeat(1_900_000) }] };
    return attacker.call('POST', '/v1/sessions/s/items', { body, key: `large-${index}` });
  },
  'audit records': (attacker) => (index) =>
    attacker.call('POST', '/v1/reports', {
      body: { audit: Array.from({ length: 30 }, () => RECORD) },
      key: `audit-${index}`,
    }),
  events: (attacker) => (index) => {
    const event = { ...EVENT, agent: attacker.name, session: 's-attack', rootMessage: 'm' };
    return attacker.call('POST', '/v1/reports', {
      body: { events: Array.from({ length: 40 }, () => event) },
      key: `events-${index}`,
    });
  },
  'searches for capabilities': (attacker, deliveryToken) => () =>
    attacker.call('POST', '/v1/discovery/search', { body: { deliveryToken, query: QUERY } }),
  'writes and searches of memory': (attacker, deliveryToken) => (index) => {
    const headers = { [DELIVERY_TOKEN_HEADER]: deliveryToken };
    if (index % 2 === 1)
      return attacker.call('GET', `/v1/memory?query=${encodeURIComponent(QUERY)}&limit=20`, { headers });
    const body = { value: WORDS.repeat(40) };
    return attacker.call('PUT', `/v1/memory/self.${index % 300}`, { body, headers, key: `memory-${index}` });
  },
  'calls of the model': (attacker, deliveryToken) => () => {
    const messages = [{ role: 'user', text: 'x'.repeat(100_000) }];
    const request = { model: 'default/default', system: '', messages, tools: [], maxOutputTokens: 100 };
    return attacker.call('POST', '/v1/models/stream', { body: { deliveryToken, request } });
  },
  'long polls that end at once': (attacker) => () => {
    const ending = new AbortController();
    setImmediate(() => ending.abort());
    return attacker.call('POST', '/v1/messages/next', { body: { waitSeconds: 60 }, signal: ending.signal });
  },
  // Last: afterwards no message to any attacker of the namespace has a place.
  'messages of users': (attacker) => (index) =>
    attacker.userCall('POST', `/agents/${attacker.name}/messages`, {
      key: `message-${index}`,
      body: { text: 'x'.repeat(60_000), session: `s-${index}` },
    }),
};

interface Part {
  readonly name: string;
  readonly times: readonly number[];
}

/** The messages of one agent while another one with a valid token takes what it can get, beside the same messages without it. */
export async function benchNeighbours(): Promise<Row[]> {
  await using neighbours = await NoisyNeighbours.start();
  await partOf(neighbours, 'warm-up');
  const quiet: number[] = [];
  const parts: Part[] = [];
  for (const [name, attack] of Object.entries(ATTACKS)) {
    quiet.push(...(await partOf(neighbours, 'no attack')).times);
    using attacker = await neighbours.attacker();
    const { deliveryToken } = await attacker.deliver('s-attack');
    parts.push(await partOf(neighbours, name, attack(attacker, deliveryToken)));
  }
  neighbours.victim.assertOnlyBusy();
  const busy = neighbours.victim.tenant.unserved.length;
  return rowsOf(quiet, parts, { busy, peakMiB: await neighbours.peakResidentMiB() });
}

async function partOf(neighbours: NoisyNeighbours, name: string, call?: ReturnType<Attack>): Promise<Part> {
  const { victim } = neighbours;
  const from = victim.times.length;
  let isOver = false;
  const work = victim.work(ROUNDS, () => true).finally(() => (isOver = true));
  await Promise.all([work, call === undefined ? undefined : attackUntil(() => isOver, call)]);
  await victim.assertRecords();
  return { name, times: victim.times.slice(from) };
}

async function attackUntil(isOver: () => boolean, call: ReturnType<Attack>): Promise<void> {
  for (let first = 0; !isOver(); first += CALLS) await flood(CALLS, (index) => call(first + index), CONCURRENCY);
}

function rowsOf(quiet: number[], parts: readonly Part[], found: { busy: number; peakMiB: number }): Row[] {
  const p99 = (all: readonly number[]) => quantile(all, 0.99);
  const attacked = parts.flatMap((part) => part.times);
  const each = parts.map(
    (part) => `${part.name} ${milliseconds(quantile(part.times, 0.5))}/${milliseconds(p99(part.times))}`,
  );
  const note = `p50/p99 without an attack ${milliseconds(quantile(quiet, 0.5))}/${milliseconds(p99(quiet))}; ${each.join(', ')}`;
  const what = 'a message beside a hostile agent, p99 relative to the one without it';
  return [
    atMost('goal', what, p99(attacked) / p99(quiet), MAX_RATIO, times, { note }),
    atMost('goal', 'requests of the victim that met a late event loop', found.busy, 0, plain),
    atMost('requirement', 'resident memory of the gateway, MiB', found.peakMiB, MAX_RESIDENT_MIB, plain),
  ];
}
