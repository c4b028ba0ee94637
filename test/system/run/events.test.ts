import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createRecordSessionStore } from '../../../src/agent/session/session-store.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { fileRecordStore } from '../../../src/lib/file-record-store.ts';
import type { StampedEvent } from '../../../src/tools/events.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { openProject, type Project } from '../project.ts';

/** `make chaos` sets more. */
const MOMENTS = Number(process.env['KILLS'] ?? 6);
const LANES = 2;

const agent = (name: string, rest: string): string => `---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: ${name}}
spec:
  trustPolicyRef: {name: p}
  model: {primary: default/default}
  prompt: {system: "You are ${name}."}
  ${rest}
`;
const proactive = (...triggers: string[]): string => `schedule: {mode: Proactive, triggers: [${triggers.join(', ')}]}`;
const SHIP = '{name: paid, subject: orders.*.paid, session: orders, message: "Ship {{event.id}}."}';
const MANIFESTS = `apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p}
spec: {level: {initial: standard}, autonomy: Full}
${agent('shop', 'grants: {tools: ["event_*"], events: {publish: ["orders.>"], subscribe: ["orders.>"]}}')}
${agent('shipping', proactive(SHIP, '{name: shop, webhook: {}, message: "{{event}}"}'))}
${agent('books', proactive('{name: all, subject: "orders.>", session: books, message: "Book {{event.id}}."}'))}
`;
const SCRIPT = `rules:
  - when: {system: "You are shop", turn: 1}
    answer:
      toolCalls:
        - {id: sold, name: event_publish, arguments: {subject: orders.eu.paid, data: {id: A-7}}}
  - when: {system: "You are shop", turn: 2}
    answer: {text: "{{toolCall.sold.messages}} have it."}
  - when: {system: "You are shipping"}
    answer: {text: "Shipped."}
  - when: {system: "You are books"}
    answer: {text: "Booked.", delayMilliseconds: 100}
`;

const aProject = (): Promise<Project> => openProject({ manifests: MANIFESTS, script: SCRIPT }, 'json');

/** The messages that a session got, and its answers. */
async function conversation({ path }: Project, name: string, session: string) {
  const records = fileRecordStore(join(path, '.temper'));
  const store = createRecordSessionStore(records, systemClock, { agent: name, namespace: 'default' });
  const { items } = await store.load(session);
  return {
    asked: items.flatMap((item) => (item.role === 'user' ? [item.text] : [])),
    answered: items.flatMap((item) => (item.role === 'assistant' && item.toolCalls.length === 0 ? [item.text] : [])),
  };
}

/** Asserts that each agent got the event once and worked on it once. */
async function assertReceivedOnce(project: Project): Promise<void> {
  const shop = await conversation(project, 'shop', 's-1');
  assert.deepEqual(shop, { asked: ['go'], answered: ['2 have it.'] });
  const shipping = await conversation(project, 'shipping', 'orders');
  assert.deepEqual(shipping, { asked: ['Ship A-7.'], answered: ['Shipped.'] });
  const books = await conversation(project, 'books', 'books');
  assert.deepEqual(books, { asked: ['Book A-7.'], answered: ['Booked.'] });
  const listed = await project.temper('events', '--output', 'json');
  const events = jsonLines<{ subject: string; agent: string; messages: number; excerpt: string }>(listed.stdout);
  assert.deepEqual(
    events.map(({ subject, agent: by, messages, excerpt }) => [subject, by, messages, excerpt]),
    [['orders.eu.paid', 'shop', 2, '{"id":"A-7"}']],
    listed.stderr,
  );
}

describe('events in one process', () => {
  it('an event reaches the agents with a matching trigger before the run ends, temper events lists it, and a webhook is named', async () => {
    await using project = await aProject();
    const { code, stdout, stderr } = await project.run('--agent', 'shop', '--session', 's-1', '-m', 'go').ended;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /these triggers get events only with temper run --serve --webhooks PORT: shipping\.shop/);
    await assertReceivedOnce(project);
    const heard = jsonLines<StampedEvent>(stdout).flatMap((event) =>
      event.type === 'message-received' ? [`${event.from ?? 'user'} ${event.agent} ${event.session}`] : [],
    );
    assert.deepEqual(heard.toSorted(), ['trigger books books', 'trigger shipping orders', 'user shop s-1']);
    const text = await project.temper('events');
    assert.match(text.stdout, /SUBJECT +SOURCE +AGENT +MESSAGES.*\norders\.eu\.paid +Agent +shop +2/);
  });

  it(`after a kill at any moment the next run goes on, and each agent gets the event once (${MOMENTS} kills)`, async () => {
    let whole = 4_000;
    let [started, cutShort] = [0, 0];
    const kill = async (): Promise<void> => {
      await using project = await aProject();
      const after = Math.random() * whole;
      const running = project.run('--agent', 'shop', '--session', 's-1', '-m', 'go');
      const startedAt = performance.now();
      await Promise.race([sleep(after), running.ended]);
      running.child.kill('SIGKILL');
      const killed = await running.ended;
      if (killed.code === null) cutShort += 1;
      else whole = Math.min(whole, performance.now() - startedAt);
      const goOn = (...rest: string[]) => project.run('--agent', 'shop', '--session', 's-1', ...rest).ended;
      let next = await goOn();
      // The message was not stored, so the user sends it again; or there was nothing left to do.
      if (next.code === 2 && (await conversation(project, 'shop', 's-1')).asked.length === 0)
        next = await goOn('-m', 'go');
      assert.ok(next.code === 0 || next.code === 2, next.stderr);
      await assertReceivedOnce(project).catch((error: unknown) => {
        throw new Error(`killed after ${after.toFixed(0)} ms of ${whole.toFixed(0)}: ${killed.stdout}`, {
          cause: error,
        });
      });
    };
    const lane = async (): Promise<void> => {
      while (started < MOMENTS) {
        started += 1;
        await kill();
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    assert.ok(cutShort > 0, 'no run was cut short');
  });
});
