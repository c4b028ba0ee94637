import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { isUnprintable } from '../../lib/printable.ts';
import { traceLog } from '../../standalone/sessions/session-trace.ts';
import { EVENT_MEMBERS } from '../../tools/event-schema/agent-event.ts';
import { aTerminal, type FakeTerminal } from '../io.testing.ts';
import { followMessage } from '../cluster/messages/follow.ts';
import type { GatewayUserClient } from '../cluster/gateway-user-client.ts';
import { trace } from '../state/trace.ts';
import { withPrintableStrings } from '../../lib/text/printable-strings.ts';

/** Clipboard (OSC 52), screen and colours (CSI), C1 forms of both, window title, bell, bidirectional marks, tag characters, carriage return. */
const ATTACKS = [
  '\u001b]52;c;Y3VybCBldmlsLmV4YW1wbGV8c2g=\u0007',
  '\u001b[2J\u001b[H',
  '\u001b]0;All checks passed\u001b\\',
  '\u009b2J',
  '\u009d52;c;eA==\u009c',
  '\u0007',
  '\u202eevitceffe\u2066',
  '\u{e0041}\u200b\ufeff',
  'harmless\rAll checks passed',
] as const;
/** The characters of an output that could control a terminal. The command itself writes line breaks only. */
function controls(output: string): string[] {
  return Array.from(output).filter((character) => character !== '\n' && isUnprintable(character.codePointAt(0) ?? 0));
}

/** A value of this schema with the attack in every string; the names of members of free values too. */
function hostileValue(schema: JsonObject, attack: string): Json {
  const { type, properties, items } = schema as {
    type?: string;
    properties?: Record<string, JsonObject>;
    items?: JsonObject;
  };
  if (type === 'boolean') return true;
  if (type === 'integer' || type === 'number') return 1;
  if (properties !== undefined)
    return Object.fromEntries(Object.entries(properties).map(([name, part]) => [name, hostileValue(part, attack)]));
  if (items !== undefined && 'properties' in items) return [hostileValue(items, attack)];
  return type === undefined && !('enum' in schema) && !('anyOf' in schema)
    ? { [attack]: [attack, { a: attack }] }
    : attack;
}

/** One event of each kind. */
function hostileEvents(attack: string): JsonObject[] {
  return Object.entries(EVENT_MEMBERS).map(([type, members]) => ({
    type,
    ...(hostileValue({ properties: members } as unknown as JsonObject, attack) as JsonObject),
    time: attack,
    agent: attack,
    session: attack,
    rootMessage: attack,
  }));
}

/** The events of a conversation around each event, so that every state of the transcript is passed. */
function conversation(attack: string): JsonObject[] {
  const events = hostileEvents(attack);
  const running = events.filter(({ type }) => type !== 'session-end');
  return [
    ...running,
    ...running.toReversed(),
    ...running.map((event) => ({ ...event, delta: false, ok: false, passed: false })),
    ...events,
  ];
}

function gatewayWith(lines: readonly JsonObject[]): GatewayUserClient {
  const stream = async function* all(): AsyncGenerator<string> {
    for (const line of lines) yield JSON.stringify(line);
  };
  return { lines: () => Promise.resolve(stream()) } as unknown as GatewayUserClient;
}

const FORMS = {
  pipe: (): FakeTerminal => aTerminal(),
  terminal: (): FakeTerminal => ({ ...aTerminal(), terminal: true, columns: () => 60 }),
} as const;

describe('events that a pod or a file invents', () => {
  let state: string;
  before(async () => {
    state = await mkdtemp(join(tmpdir(), 'temper-hostile-'));
  });
  after(() => rm(state, { recursive: true }));

  it('the attacks are in every string member of every kind of event', () => {
    for (const event of hostileEvents('\u0007')) {
      for (const [name, value] of Object.entries(event)) {
        if (name === 'type' || typeof value === 'number' || typeof value === 'boolean') continue;
        assert.match(JSON.stringify(value), /\\u0007/, `${JSON.stringify(event['type'])}.${name}`);
      }
    }
    assert.equal(hostileEvents('x').length, Object.keys(EVENT_MEMBERS).length);
  });

  for (const [form, open] of Object.entries(FORMS)) {
    for (const output of ['text', 'json'] as const) {
      it(`send --follow with output ${output} to a ${form} prints no control sequence of a pod`, async () => {
        for (const attack of ATTACKS) {
          const io = open();
          const events = conversation(attack).map((event, index) => ({ seq: index + 1, kind: 'event', event }));
          const failed = { seq: 900, kind: 'failed', message: 'other', code: attack, text: attack };
          const last = { seq: 901, kind: 'reply', message: 'm', text: `${attack}\n${attack}`, finishReason: 'stop' };
          const receipt = { id: 'm', session: 's', after: 0, duplicate: false, podBound: true };
          const gateway = gatewayWith([...events, failed, last]);
          assert.equal(await followMessage({ gateway, agent: attack, receipt, output }, io), true);
          assert.deepEqual(controls(io.printed()), [], JSON.stringify(attack));
          assert.deepEqual(controls(io.errors()), [], JSON.stringify(attack));
          assert.ok(io.printed().length > 1_000);
        }
      });

      it(`trace with output ${output} to a ${form} prints no control sequence of a state folder`, async () => {
        for (const [index, attack] of ATTACKS.entries()) {
          const records = fileRecordStore(state);
          const scope = { session: `s-${form}-${output}-${index}`, agent: 'analyst', namespace: 'default' };
          await records.put('sessions', `default_analyst_${scope.session}`, { ...scope, openedAt: attack });
          await records.append(traceLog(scope), { ...scope, agent: attack, events: conversation(attack), left: 1 });
          const io = open();
          assert.equal(await trace({ session: scope.session, state, output }, io), 0);
          assert.deepEqual(controls(io.printed()), [], JSON.stringify(attack));
          assert.ok(io.printed().length > 1_000);
        }
      });
    }
  }

  it('the strings of a foreign event are escaped once, keep their line breaks, and get no prototype', () => {
    const value = JSON.parse('{"a\\u001b": ["x\\u009by\\nz", 1, null], "__proto__": {"b": "\\u202e"}}') as Json;
    const escaped = withPrintableStrings(value);
    assert.deepEqual(withPrintableStrings(escaped), escaped);
    assert.ok(isJsonObject(escaped));
    assert.deepEqual(escaped['a\\u{1b}'], ['x\\u{9b}y\nz', 1, null]);
    assert.equal(JSON.stringify(escaped['__proto__']), String.raw`{"b":"\\u{202e}"}`);
  });
});
