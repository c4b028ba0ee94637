import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { ChildState } from '../../../../src/gateway-api/pod-api.ts';
import {
  CHILD_PROMPT,
  LEAD_PROMPT,
  openKilledTree,
  type TreeAgent,
  type TreeKill,
  type TreeStep,
} from '../../../support/gateway/killed-tree.ts';
import { aModelRequest, streamEnd, streamLines } from '../../../support/gateway/model-gateway-fixture.ts';
import { type MessageClient, parsed, receiptOf } from '../../../support/gateway/message-client.ts';
import { ANSWER_USAGE } from '../../../support/gateway/tree-ledger.ts';
import { poll } from '../../../support/poll.ts';
import { seededRandom } from '../../../support/seeded-random.ts';
import type { HttpResponse } from '../../../support/gateway/gateway-fixture.ts';
import type { Task } from '../../../../src/bus/port.ts';

/** Walks through a tree; `make chaos` sets more, and then kills in every step. */
const TIMES = Number(process.env['KILLS'] ?? 1);
const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 1e9));
const STEPS = [
  'think',
  'spawn',
  'ask',
  'child-think',
  'answer',
  'ticket',
  'specialist',
  'result',
  'result-ticket',
  'ask-peer',
  'end',
  'reply',
  'late-answer',
  'take',
] as const satisfies readonly TreeStep[];
/** The kills of one walk, each in another step: of a gateway, and each third one of the NATS server. */
const KILLS = TIMES > 1 ? STEPS.length : 3;
/** A gateway answers these requests in about this time on an idle machine. */
const MAX_DELAY_MS = 40;

/** A tree of agents whose gateways and operators are killed. `open` gives the client of two replicas. */
export function treeKills(open: () => MessageClient): void {
  it(`a tree whose gateways, operators and NATS server are killed at any step loses no message, starts nothing twice and is charged exactly (SEED=${SEED})`, async (context: TestContext) => {
    context.diagnostic(`SEED=${SEED}`);
    const random = seededRandom(SEED);
    for (let time = 0; time < TIMES; time += 1) {
      const kills = new Map<TreeStep, TreeKill>();
      while (kills.size < KILLS) {
        const step = STEPS[random(STEPS.length)] ?? 'spawn';
        const component = kills.size % 3 === 2 ? 'nats' : 'gateway';
        if (!kills.has(step)) kills.set(step, { component, afterMs: random(MAX_DELAY_MS) });
      }
      await using tree = await openKilledTree(open(), `killed-tree-${time}`, kills);
      await walk(tree).catch((error: unknown) => {
        throw new Error(`killed at ${JSON.stringify([...kills])}`, { cause: error });
      });
    }
  });
}

type Tree = Awaited<ReturnType<typeof openKilledTree>>;

/** The lead starts a child and a specialist, asks both and a peer, ends the child, and gets the answer of the peer later. */
async function walk(tree: Tree): Promise<void> {
  const { lead, peer } = tree;
  const ack = (agent: TreeAgent, deliveryToken: string, reply: string, step: TreeStep): Promise<HttpResponse> =>
    tree.call(step, agent, '/v1/deliveries', { deliveryToken, action: 'ack', reply, finishReason: 'complete' });
  const taskOf = async (deliveryToken: string, ticket: string, step: TreeStep): Promise<Task> =>
    parsed(await tree.call(step, lead, '/v1/tasks', { deliveryToken, ticket, waitSeconds: 20 })) as Task;
  const sent = receiptOf(await tree.send('go'));
  const { deliveryToken, message } = await tree.next(lead);
  assert.equal(message.id, sent.id);
  const ask = async (to: string, step: TreeStep): Promise<string> => {
    const draft = { to, session: 'work', text: 'how much?' };
    return receiptOf(await tree.call(step, lead, '/v1/messages', { deliveryToken, draft, ask: {} })).id;
  };

  const think = async (agent: TreeAgent, token: string, system: string, step: TreeStep): Promise<void> => {
    const request = aModelRequest({ system });
    const answer = await tree.call(step, agent, '/v1/models/stream', { deliveryToken: token, request });
    assert.deepEqual(streamEnd(streamLines(answer)).usage, { ...ANSWER_USAGE, cachedInputTokens: 0 });
  };

  await think(lead, deliveryToken, LEAD_PROMPT, 'think');
  const wanted = { name: 'helper', prompt: 'x', tools: ['file_read'] };
  const started = parsed(
    await tree.call('spawn', lead, '/v1/children', { deliveryToken, input: wanted, waitSeconds: 20 }),
  ) as ChildState;
  assert.equal(started.state, 'Done');
  assert.deepEqual(await tree.children(), [started.name]);
  const child = await tree.run(started.name);
  const ticket = await ask(child.name, 'ask');
  const asked = await tree.next(child);
  assert.equal(asked.message.id, ticket);
  await think(child, asked.deliveryToken, CHILD_PROMPT, 'child-think');
  parsed(await ack(child, asked.deliveryToken, '42', 'answer'), 204);
  assert.deepEqual([(await taskOf(deliveryToken, ticket, 'ticket')).text, await tree.waiting(child)], ['42', 0]);

  const input = { role: 'reviewer', instructions: 'Review.', task: 'SELECT 1', reason: 'no experience' };
  const hired = parsed(
    await tree.call('specialist', lead, '/v1/children/specialists', { deliveryToken, input, waitSeconds: 20 }),
  ) as ChildState;
  assert.equal(hired.state, 'Done', JSON.stringify(hired));
  assert.deepEqual(new Set(await tree.children()), new Set([started.name, hired.name]));
  const specialist = await tree.run(hired.name);
  const task = await tree.next(specialist);
  assert.deepEqual([task.message.text, task.message.id], ['SELECT 1', hired.ticket]);
  const acked = await ack(specialist, task.deliveryToken, 'fine', 'result');
  // Its result ends a specialist: when the response is lost with a gateway, its pod may be gone before the repeated request.
  if (acked.status !== 403) parsed(acked, 204);
  else assert.match(acked.text, /TEMPER_POD_UNKNOWN/);
  assert.equal((await taskOf(deliveryToken, hired.ticket ?? '', 'result-ticket')).text, 'fine');
  await poll('the end of the specialist', async () => (await tree.children()).length === 1);

  const late = await ask(peer.name, 'ask-peer');
  const ended = { deliveryToken, agent: child.name, waitSeconds: 20 };
  parsed(await tree.call('end', lead, '/v1/children/end', ended));
  await poll('the end of the child', async () => (await tree.children()).length === 0);
  parsed(await ack(lead, deliveryToken, 'I have asked', 'reply'), 204);
  const question = await tree.next(peer);
  assert.equal(question.message.id, late);
  parsed(await ack(peer, question.deliveryToken, '7', 'late-answer'), 204);
  const answer = await tree.next(lead);
  assert.deepEqual([answer.message.source, answer.message.answers], ['Reply', late]);
  parsed(await ack(lead, answer.deliveryToken, 'thanks', 'take'), 204);
  assert.deepEqual([await tree.waiting(lead), await tree.waiting(peer), await tree.children()], [0, 0, []]);
  assert.deepEqual(await tree.replies(sent.session), ['I have asked', 'thanks']);
  await tree.assertCharged(child);
}
