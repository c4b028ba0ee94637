import assert from 'node:assert/strict';
import { access, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { pollValue } from '../../test/support/poll.ts';
import { writeGatewayConfig } from '../gateway-client/certificates.testing.ts';
import { aMessage } from '../gateway-client/inbox.testing.ts';
import type { Json } from '../lib/json.ts';
import { aSharedTool } from '../tempering/tempering.testing.ts';
import { PodFixture, quickstartAssignment } from './pod.testing.ts';
import { AGENT_FRAMES, Channel, SANDBOX_FRAMES } from './socket/channel.ts';
import { PROTOCOL_VERSION } from './socket/protocol.ts';
import { socketPaths } from './socket/socket-folder.ts';

const APRIL =
  'The folder data holds our orders, one CSV file a month. How many orders were paid in April, and what were they worth?';

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

describe('the fixture of a pod', () => {
  it('a role that cannot start rejects the messages of the pod with its log', async () => {
    await using bench = await PodFixture.open();
    const before = bench.gateway.inbox.add(aMessage());
    bench.agent('--no-such-option');
    await assert.rejects(before, /the role "agent" ended with [1-9][\s\S]*no-such-option/);
    await assert.rejects(bench.gateway.inbox.add(aMessage()), /no-such-option/);
  });
});

describe('a pod', { timeout: 3_600_000 }, () => {
  it('a warm pod waits until it is bound, then forges a tool, uses it in the same turn and answers', async () => {
    await using bench = await PodFixture.open();
    const { gateway } = bench;
    const agent = bench.agent();
    const sandbox = bench.sandbox();
    await sandbox.logged('connected to the agent');
    await agent.logged('"ready":true');
    assert.ok(await exists(bench.path('run/agent/ready')), 'a warm pod is ready');
    const end = gateway.inbox.add(aMessage({ text: APRIL }));
    assert.equal(gateway.inbox.deliveries, 0);
    await gateway.assign(await quickstartAssignment());
    const answer = await end;
    assert.ok(answer.action === 'ack', JSON.stringify(answer));
    assert.match(answer.reply, /paid/i);
    assert.equal(answer.finishReason, 'complete');
    const types: string[] = gateway.events.map(({ type }) => type);
    for (const type of ['message-received', 'tool-call', 'forge-gate', 'forge-accepted', 'session-end']) {
      assert.ok(types.includes(type), `${type} in ${types.join(' ')}`);
    }
    const gates = gateway.events.flatMap((event) =>
      event.type === 'forge-gate' && event.tool === 'csv_rows' ? [event.result.gate] : [],
    );
    assert.deepEqual(gates.slice(-4), ['resources', 'policy', 'judge', 'registration'], 'gate events arrive in order');
    assert.ok(gateway.uses.some(({ evidence, succeeded }) => evidence === 'reported' && succeeded));
    const composed = gateway.uses.at(-1)?.digest;
    assert.equal(gateway.uses.length, 3, 'the composed tool and its two steps');
    assert.deepEqual(answer.toolCalls, [{ digest: composed, calls: 1, failures: 0 }], 'what the agent itself called');
    assert.ok(gateway.audit.every(({ evidence }) => evidence === 'reported'));
    assert.ok(gateway.audit.some(({ action }) => action === 'tool.called'));
    assert.equal(await agent.end('SIGTERM'), 0, agent.log);
    assert.equal(await sandbox.end('SIGTERM'), 0, sandbox.log);
    assert.equal(await exists(bench.path('run/agent/ready')), false);
  });

  it('a turn without tools sends nothing to the sandbox, so that a dormant sandbox starts no runner', async () => {
    await using bench = await PodFixture.open({ rules: [{ answer: { text: 'done' } }] });
    const { gateway } = bench;
    const agent = bench.agent();
    await gateway.assign(await quickstartAssignment());
    await pollValue('the socket of the agent', () => exists(socketPaths(bench.path('run')).socket), Boolean);
    const received: Json[] = [];
    const socket = connect(socketPaths(bench.path('run')).socket);
    const listener = { onFrame: (frame: Json) => received.push(frame) > 0, onClosed: () => undefined };
    const sandbox = new Channel(socket, listener, { accepts: AGENT_FRAMES, sends: SANDBOX_FRAMES });
    sandbox.send({ type: 'hello', version: PROTOCOL_VERSION });
    const answer = await gateway.inbox.add(aMessage());
    assert.ok(answer.action === 'ack' && answer.reply === 'done', JSON.stringify(answer));
    assert.equal(await agent.end('SIGTERM'), 0, agent.log);
    assert.deepEqual(received, [{ type: 'welcome', version: PROTOCOL_VERSION }]);
  });

  it('a pod finds a shared tool through the gateway, runs it in its sandbox, and rejects a tool with a wrong digest', async () => {
    const calls = [
      { name: 'discover_capabilities', arguments: { query: 'double a number' } },
      { name: 'double_it', arguments: { value: 21 } },
      { name: 'changed', arguments: { value: 1 } },
    ];
    const rules = calls.map((call, index) => ({ when: { turn: index + 1 }, answer: { toolCalls: [call] } }));
    await using bench = await PodFixture.open({ rules: [...rules, { answer: { text: 'done' } }] });
    const { gateway } = bench;
    const { digest } = aSharedTool('something_else');
    gateway.promoted.push({ ...aSharedTool('changed'), digest });
    const line = { id: 'emergent-tool:double_it', name: 'double_it', kind: 'emergent-tool', description: 'Doubles.' };
    gateway.found = () => {
      // The tool becomes active while the message is being processed.
      gateway.promoted.push(aSharedTool('double_it'));
      return { capabilities: [{ ...line, relevance: 0.87, available: true }], more: 0 };
    };
    bench.sandbox();
    const agent = bench.agent();
    await gateway.assign(await quickstartAssignment());
    const answer = await gateway.inbox.add(aMessage());
    assert.ok(answer.action === 'ack', JSON.stringify(answer));
    assert.equal(answer.reply, 'done');
    assert.deepEqual(
      gateway.searches.map(({ query }) => query),
      ['double a number'],
    );
    const { items } = await gateway.sessions.load('s-1');
    const results = JSON.stringify(items.filter(({ role }) => role === 'tool'));
    assert.match(results, /0\.87/);
    assert.match(results, /result[^0-9]+42/);
    assert.match(results, /TEMPER_TOOL_NOT_FOUND/);
    await agent.logged('its digest differs from the listed digest');
  });

  it('a pod reads the files of its context in the sandbox container, and nothing outside the workspace', async () => {
    await using bench = await PodFixture.open({ rules: [{ answer: { text: 'done' } }] });
    const { gateway } = bench;
    await writeFile(bench.path('workspace/SOUL.md'), 'Be kind.');
    await writeFile(bench.path('outside'), 'a secret');
    await symlink(bench.path('outside'), bench.path('workspace/link'));
    bench.sandbox();
    bench.agent();
    const assignment = await quickstartAssignment();
    const { agent } = assignment;
    const context = { files: ['SOUL.md', 'link', 'missing'], memory: ['self.profile'] };
    const grants = { ...agent.spec.grants, memory: { read: ['self.*'] } };
    const spec = { ...agent.spec, grants, prompt: { ...agent.spec.prompt, context } };
    await gateway.assign({ ...assignment, agent: { ...agent, spec } });
    const answer = await gateway.inbox.add(aMessage());
    assert.ok(answer.action === 'ack' && answer.reply === 'done', JSON.stringify(answer));
    const parts = gateway.events.flatMap((event) => (event.type === 'context' ? event.parts : []));
    assert.deepEqual(
      parts.map(({ name, state, characters }) => [name, state, characters]),
      [
        ['SOUL.md', 'Included', 8],
        ['link', 'Denied', 0],
        ['missing', 'Missing', 0],
        ['self.profile', 'Missing', 0],
      ],
    );
  });

  it('a simple message takes three requests, and two more when the gateway could not deliver its session', async () => {
    await using bench = await PodFixture.open({ rules: [{ answer: { text: 'done' } }] });
    const { gateway } = bench;
    bench.sandbox();
    bench.agent();
    await gateway.assign(await quickstartAssignment());
    const requestsOf = async (text: string) => {
      const before = gateway.requests.length;
      const answer = await gateway.inbox.add(aMessage({ text }));
      assert.ok(answer.action === 'ack' && answer.reply === 'done', JSON.stringify(answer));
      const all = gateway.requests.slice(before).map(({ what }) => what);
      // A poll that waits began before the message; reports are also sent after a time.
      const end = all.indexOf('POST /v1/deliveries');
      return all.slice(0, end + 1).filter((what) => !/assignment|reports|next/.test(what));
    };
    await requestsOf('first');
    assert.deepEqual(await requestsOf('second'), ['POST /v1/models/stream', 'POST /v1/deliveries']);
    gateway.deliversSessions = false;
    assert.deepEqual(await requestsOf('third'), [
      'GET /v1/sessions/s-1/tools',
      'GET /v1/sessions/s-1',
      'POST /v1/models/stream',
      'POST /v1/deliveries',
    ]);
    const { items } = await gateway.sessions.load('s-1');
    assert.deepEqual(
      items.map(({ text }) => text),
      ['first', 'done', 'second', 'done', 'third', 'done'],
    );
    const polls = gateway.requests.filter(({ what }) => what === 'POST /v1/messages/next').length;
    assert.ok(polls <= 4, `${polls} polls for three messages`);
  });

  it('a pod works on messages of several sessions up to the limit of the agent, and mixes nothing of them', async () => {
    const names = ['alpha', 'beta', 'gamma', 'delta'];
    const rules = names.flatMap((name) => [
      {
        when: { lastUser: name, turn: 1 },
        answer: { toolCalls: [{ name: 'file_list', arguments: { path: 'data' } }] },
      },
      { when: { lastUser: name }, answer: { text: `reply ${name}` } },
    ]);
    await using bench = await PodFixture.open({ rules });
    const { gateway } = bench;
    bench.sandbox();
    bench.agent();
    let isHeld = true;
    gateway.fault = (what) => (isHeld && what.endsWith('/models/stream') ? { status: 503 } : undefined);
    const assignment = await quickstartAssignment();
    const { agent } = assignment;
    const spec = { ...agent.spec, limits: { ...agent.spec.limits, concurrency: 3 } };
    const assigned = { ...assignment, agent: { ...agent, spec } };
    await gateway.assign(assigned);
    const messages = names.map((name) => aMessage({ text: name, session: `s-${name}`, root: `root-${name}` }));
    // The second message of a session waits behind the first one, although there are free slots.
    const behind = aMessage({ text: 'alpha', session: 's-alpha' });
    const ends = [...messages, behind].toReversed().map((message) => gateway.inbox.add(message));
    await pollValue(
      'three messages in work',
      () => gateway.inbox.deliveries,
      (count) => count === 3,
    );
    // A further poll would be there: the pod asks as soon as a message is in work.
    const polls = gateway.requests.filter(({ what }) => what === 'POST /v1/messages/next').length;
    assert.equal(polls, 3);
    assert.equal(gateway.inbox.deliveries, 3, 'a fourth message was delivered');
    await gateway.assign({ ...assigned, version: '2', tools: 'changed' });
    const refreshed = (): number =>
      new Set(gateway.requests.filter(({ what }) => /^GET .*\/tools$/.test(what)).map(({ what }) => what)).size;
    await pollValue('a refresh of the tools of each message', refreshed, (count) => count === 3);
    isHeld = false;
    for (const [index, end] of ends.toReversed().entries()) {
      const answer = await end;
      const message = messages[index] ?? behind;
      assert.ok(answer.action === 'ack' && answer.reply === `reply ${message.text}`, JSON.stringify(answer));
      const carried = answer.reports?.batch.events ?? [];
      assert.ok(
        carried.every(({ session, rootMessage }) => session === message.session && rootMessage === message.root),
      );
    }
    for (const { text, session, root } of messages) {
      const events = gateway.events.filter((event) => event.session === session && event.rootMessage === root);
      const received = events.flatMap((event) => (event.type === 'message-received' ? [event.text] : []));
      assert.deepEqual(received, [text]);
      assert.equal(events.filter(({ type }) => type === 'tool-result').length, 1);
      const { items } = await gateway.sessions.load(session);
      assert.ok(
        items.every((item) => item.role !== 'user' || item.text === text),
        session,
      );
      assert.equal(items.filter(({ role }) => role === 'assistant').length, session === 's-alpha' ? 4 : 2);
    }
  });

  it('a pod whose end is refused for what it carries sends the parts alone, and the message ends', async () => {
    await using bench = await PodFixture.open({ rules: [{ answer: { text: 'done' } }] });
    const { gateway } = bench;
    bench.sandbox();
    bench.agent();
    let refusals = 0;
    gateway.fault = (what) => {
      if (!what.endsWith('/deliveries') || refusals > 0) return undefined;
      refusals += 1;
      return { status: 413 };
    };
    await gateway.assign(await quickstartAssignment());
    const answer = await gateway.inbox.add(aMessage({ text: 'hi' }));
    assert.ok(answer.action === 'ack' && answer.reply === 'done', JSON.stringify(answer));
    assert.deepEqual([answer.append, answer.reports, gateway.inbox.deliveries], [undefined, undefined, 1]);
    const { items } = await gateway.sessions.load('s-1');
    assert.deepEqual(
      items.map(({ text }) => text),
      ['hi', 'done'],
    );
    assert.equal(gateway.events.filter(({ type }) => type === 'session-end').length, 1);
  });

  it('a turn with a tool without effects takes one request, and any other call is stored before and after it', async () => {
    const rules = [
      { when: { turn: 1 }, answer: { toolCalls: [{ name: 'file_list', arguments: { path: 'data' } }] } },
      { when: { turn: 2 }, answer: { toolCalls: [{ name: 'agent_send', arguments: { to: 'a', text: 'b' } }] } },
      { answer: { text: 'done' } },
    ];
    await using bench = await PodFixture.open({ rules });
    const { gateway } = bench;
    bench.sandbox();
    bench.agent();
    await gateway.assign(await quickstartAssignment());
    const answer = await gateway.inbox.add(aMessage());
    assert.ok(answer.action === 'ack' && answer.reply === 'done', JSON.stringify(answer));
    const asked = gateway.requests
      .map(({ what }) => what.split(' ')[1] ?? '')
      .filter((path) => !/assignment|reports|next/.test(path));
    const from = asked.indexOf('/v1/models/stream');
    assert.deepEqual(asked.slice(from, asked.indexOf('/v1/deliveries') + 1), [
      '/v1/models/stream',
      '/v1/models/stream',
      '/v1/sessions/s-1/items',
      '/v1/sessions/s-1/items',
      '/v1/models/stream',
      '/v1/deliveries',
    ]);
    const { items } = await gateway.sessions.load('s-1');
    assert.deepEqual(
      items.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant'],
    );
  });

  it('a pod asks the gateway once for a model that fails, because the gateway applies the fallbacks of the agent', async () => {
    const unknown = { status: 404, type: 'not_found_error', message: 'no such model' };
    await using bench = await PodFixture.open({ rules: [{ answer: { error: unknown } }] });
    const { gateway } = bench;
    let asked = 0;
    gateway.fault = (what) => {
      if (what.endsWith('/models/stream')) asked += 1;
      return undefined;
    };
    bench.sandbox();
    bench.agent();
    const assignment = await quickstartAssignment();
    const { agent, policy } = assignment;
    const spec = { ...agent.spec, model: { ...agent.spec.model, fallbacks: ['replay/second', 'replay/third'] } };
    const models = { ...policy.spec.models, allow: ['replay/*'] };
    const permissive = { ...policy, spec: { ...policy.spec, models } };
    await gateway.assign({ ...assignment, agent: { ...agent, spec }, policy: permissive });
    const answer = await gateway.inbox.add(aMessage());
    assert.ok(answer.action === 'ack', JSON.stringify(answer));
    assert.match(answer.reply, /TEMPER_MODEL_NOT_FOUND/);
    assert.equal(asked, 1);
  });

  it('when a pod is killed during a message, the next pod resumes the message and answers once', async () => {
    await using bench = await PodFixture.open();
    const { gateway } = bench;
    bench.sandbox();
    const first = bench.agent();
    let reviews = 0;
    gateway.fault = (what) => {
      if (!what.endsWith('/forge/review')) return undefined;
      reviews += 1;
      if (reviews !== 2) return undefined;
      first.child.kill('SIGKILL');
      return 'reset';
    };
    await gateway.assign(await quickstartAssignment());
    const end = gateway.inbox.add(aMessage({ text: APRIL }));
    assert.equal(await first.exited, null);
    bench.agent();
    const answer = await end;
    assert.ok(answer.action === 'ack', JSON.stringify(answer));
    assert.match(answer.reply, /paid/i);
    assert.equal(gateway.inbox.deliveries, 2);
    const { items } = await gateway.sessions.load('s-1');
    assert.equal(items.filter((item) => item.role === 'user').length, 1);
    const asked = items.flatMap((item) => (item.role === 'assistant' ? item.toolCalls.map(({ id }) => id) : []));
    assert.deepEqual(asked, [...new Set(asked)], 'no tool call is repeated');
  });

  it('a pod that is asked to stop returns all its messages at once, and the next pod answers them', async () => {
    await using bench = await PodFixture.open();
    const { gateway } = bench;
    bench.sandbox();
    const first = bench.agent('--grace', '0');
    let asked = 0;
    gateway.fault = (what) => {
      if (asked >= 2 || !what.endsWith('/models/stream')) return undefined;
      asked += 1;
      if (asked === 2) first.child.kill('SIGTERM');
      return { status: 503, headers: { 'retry-after': '5' } };
    };
    await gateway.assign(await quickstartAssignment());
    const ends = ['s-1', 's-2'].map((session) => gateway.inbox.add(aMessage({ text: APRIL, session })));
    assert.equal(await first.exited, 0, first.log);
    bench.agent();
    for (const end of ends) {
      const answer = await end;
      assert.ok(answer.action === 'ack' && /paid/i.test(answer.reply), JSON.stringify(answer));
    }
    assert.equal(gateway.inbox.deliveries, 4);
  });

  it('a pod extends its delivery token while it works, and aborts when the token is lost', async () => {
    await using bench = await PodFixture.open();
    const { gateway } = bench;
    gateway.inbox.ackTimeoutMs = 2_000;
    bench.sandbox();
    const agent = bench.agent();
    let held = true;
    gateway.fault = (what) => (held && what.endsWith('/models/stream') ? { status: 503 } : undefined);
    await gateway.assign(await quickstartAssignment());
    const end = gateway.inbox.add(aMessage({ text: APRIL }));
    await pollValue(
      'two extensions of the token',
      () => gateway.inbox.extensions,
      (count) => count >= 2,
    );
    assert.equal(gateway.inbox.deliveries, 1);
    gateway.inbox.expireAll();
    held = false;
    await agent.logged('redelivered to another pod');

    const answer = await end;
    assert.equal(answer.action, 'ack');
    assert.equal(gateway.inbox.deliveries, 2);
  });

  it('a pod applies a new assignment from the next message on, and receives no message while suspended', async () => {
    await using bench = await PodFixture.open();
    const { gateway } = bench;
    bench.sandbox();
    const agent = bench.agent();
    const assignment = await quickstartAssignment();
    await gateway.assign({ ...assignment, suspended: true });
    await agent.logged('"readiness"');
    const end = gateway.inbox.add(aMessage({ text: 'hello' }));
    assert.equal(gateway.inbox.deliveries, 0);
    const { spec } = assignment.policy;
    const closed = { ...assignment.policy, spec: { ...spec, models: { ...spec.models, allow: ['none/at-all'] } } };
    await gateway.assign({ ...assignment, version: '2', policy: closed });
    const answer = await end;
    assert.ok(answer.action === 'ack' && answer.finishReason === 'refusal', JSON.stringify(answer));
    assert.match(answer.reply, /^\[TEMPER_POLICY_DENIED: /, 'a failure that a retry would repeat becomes the reply');
    await gateway.assign({ ...assignment, version: '3' });
    await agent.logged('"version":"3"');
    const after = await gateway.inbox.add(aMessage({ text: APRIL, session: 's-2' }));
    assert.ok(after.action === 'ack' && after.finishReason === 'complete', JSON.stringify(after));
    assert.equal(agent.child.exitCode, null, 'the process did not restart');
  });

  it('a pod uses a renewed token, and rejects an invalid message', async () => {
    await using bench = await PodFixture.open();
    const { gateway } = bench;
    bench.sandbox();
    bench.agent();
    await gateway.assign(await quickstartAssignment());
    const poison = await gateway.inbox.add(aMessage({ session: '../../etc' }));
    assert.ok(poison.action === 'reject' && poison.code === 'TEMPER_SESSION_INVALID', JSON.stringify(poison));
    gateway.tokens.add('token-2');
    await writeGatewayConfig(bench.path('endpoints'), { token: 'token-2' });
    gateway.tokens.delete('token-1');
    const answer = await gateway.inbox.add(aMessage({ text: APRIL }));
    assert.equal(answer.action, 'ack', JSON.stringify(answer));
    assert.equal(gateway.requests.at(-1)?.token, 'token-2');
  });

  it('neither role starts when another user owns the socket folder', async () => {
    await using bench = await PodFixture.open();
    await writeFile(bench.path('run/agent'), '');
    const agent = bench.agent();
    assert.equal(await agent.exited, 1);
    assert.match(agent.log, /"code":"TEMPER_POD_INVALID".*is not a folder/);
    await rm(bench.path('run/agent'));
    await mkdir(bench.path('run/agent'), { mode: 0o777 });
    const sandbox = bench.sandbox('--agent-uid', '4711');
    await sandbox.logged('and not to 4711');
  });
});
