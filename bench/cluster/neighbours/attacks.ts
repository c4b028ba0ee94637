import { DELIVERY_TOKEN_HEADER } from '../../../src/gateway-api/pod-api.ts';
import type { Tenant } from '../../../test/support/gateway/neighbours/tenant.ts';

/** Makes calls of one kind, again and again, until the victim has finished. `index` never repeats. */
export type Attack = (attacker: Tenant, deliveryToken: string) => (index: number) => Promise<{ status: number }>;

const WORDS = Array.from({ length: 340 }, (_, index) => `w${index}`).join(' ');
const QUERY = WORDS.slice(0, 1_024);
const SMALL_VALUES = `{"deliveryToken":"bad","afterSeq":0,"items":[${'[],'.repeat(600_000)}[]]}`;
const RECORD = { action: 'noise', actor: '', evidence: 'reported', subject: 's', facts: { text: 'x'.repeat(15_000) } };
const EVENT = { time: '2026-01-01T00:00:00.000Z', type: 'message', text: 'x'.repeat(10_000), delta: true };

export const ATTACKS: Readonly<Record<string, Attack>> = {
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
