import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createRecordSessionStore } from '../../../src/agent/session/session-store.ts';
import { readUsage } from '../../../src/ledger/journal.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { fileRecordStore } from '../../../src/lib/file-record-store.ts';
import type { ModelMessage } from '../../../src/models/port.ts';
import type { StampedEvent } from '../../../src/tools/events.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { openProject, type Project } from '../project.ts';

const agent = (name: string, rest: string): string => `---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: ${name}}
spec:
  trustPolicyRef: {name: p}
  model: {primary: default/default}
  prompt: {system: "You are ${name}."}
  grants: {tools: ["*"], ${rest}}
`;
const POLICY = `apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p}
spec: {level: {initial: standard}, autonomy: Full}
`;
const MANIFESTS = `${POLICY}${agent('lead', 'messages: [reader, writer]')}${agent('reader', 'memory: {}')}${agent('writer', 'memory: {}')}`;
const SCRIPT = `rules:
  - when: {system: "You are lead", lastUser: "Answer of agent"}
    answer: {text: "Noted."}
  - when: {system: "You are lead", turn: 1}
    answer:
      toolCalls:
        - {id: now, name: agent_message, arguments: {to: reader, text: "read the note"}}
        - {id: later, name: agent_message, arguments: {to: writer, text: "write", wait: 0}}
  - when: {system: "You are lead", turn: 2}
    answer: {text: "The reader says {{toolCall.now.answer}}."}
  - when: {system: "You are reader", turn: 1}
    answer: {toolCalls: [{id: note, name: file_read, arguments: {path: note.txt}}]}
  - when: {system: "You are reader", turn: 2}
    answer: {text: "{{toolCall.note.text}}"}
  - when: {system: "You are writer"}
    answer: {text: "Written.", delayMilliseconds: 100}
`;

const aTeam = (): Promise<Project> => openProject({ manifests: MANIFESTS, script: SCRIPT }, 'json');

function historyOf({ path }: Project, agentName: string, session: string): Promise<ModelMessage[]> {
  const records = fileRecordStore(join(path, '.temper'));
  const store = createRecordSessionStore(records, systemClock, { agent: agentName, namespace: 'default' });
  return store.load(session).then(({ items }) => items);
}

const received = (items: readonly ModelMessage[]): string[] =>
  items.flatMap((item) => (item.role === 'user' ? [item.text] : []));
const said = (items: readonly ModelMessage[]): string[] =>
  items.flatMap((item) => (item.role === 'assistant' && item.toolCalls.length === 0 ? [item.text] : []));

/** Asserts that each message of the chain was handled once, and each answer came once. */
async function assertHandledOnce(project: Project): Promise<void> {
  const lead = await historyOf(project, 'lead', 's-1');
  const [first, ...replies] = received(lead);
  assert.equal(first, 'go');
  assert.equal(replies.length, 1, `the late answer comes once: ${JSON.stringify(replies)}`);
  assert.match(replies[0] ?? '', /^Answer of agent "writer" .*\n\nWritten\.$/s);
  assert.deepEqual(said(lead), ['The reader says hello.', 'Noted.']);
  for (const [name, text, answer] of [
    ['reader', 'read the note', 'hello'],
    ['writer', 'write', 'Written.'],
  ] as const) {
    const items = await historyOf(project, name, 'lead.s-1');
    assert.deepEqual([received(items), said(items)], [[text], [answer]], name);
  }
}

/** Tokens that the agents got from the model at least, by their stored answers; the replay server counts at least one per answer. */
async function assertCharged({ path }: Project): Promise<void> {
  const usage = await readUsage(fileRecordStore(join(path, '.temper')), Date.now());
  const tokens = (name: string): number => {
    const counts = usage.get(name)?.month.counts;
    return (counts?.inputTokens ?? 0) + (counts?.outputTokens ?? 0);
  };
  const agents = ['lead', 'reader', 'writer'].map((name) => tokens(`agent/default/${name}`));
  assert.ok(agents.every((count) => count > 0));
  const sum = agents.reduce((total, count) => total + count, 0);
  assert.equal(tokens('policy/default/p'), sum, 'the policy is charged what its agents are');
}

describe('a team in one process', () => {
  it('agents ask each other, a late answer comes as a message, and every event names its agent and session', async () => {
    await using project = await aTeam();
    const { code, stdout, stderr } = await project.run('--session', 's-1', '-m', 'go').ended;
    assert.equal(code, 0, stderr);
    await assertHandledOnce(project);
    await assertCharged(project);
    const events = jsonLines<StampedEvent>(stdout);
    const heard = events.flatMap((event) =>
      event.type === 'message-received' ? [`${event.from ?? 'user'} ${event.agent} ${event.session}`] : [],
    );
    assert.deepEqual(heard.toSorted(), [
      'lead reader lead.s-1',
      'lead writer lead.s-1',
      'user lead s-1',
      'writer lead s-1',
    ]);
    const usage = await project.temper('usage', '--by', 'team', '--output', 'json');
    const teams = jsonLines<{ name: string; calls: number }>(usage.stdout).map(({ name, calls }) => `${name} ${calls}`);
    assert.deepEqual(teams.toSorted(), ['lead 3', 'reader 2', 'writer 1'], usage.stderr);
    const roots = await project.temper('usage', '--by', 'root', '--output', 'json');
    assert.deepEqual(
      jsonLines<{ calls: number }>(roots.stdout).map(({ calls }) => calls),
      [6],
      'all agents worked for one message',
    );
    const listed = await project.temper('sessions', '--output', 'json');
    const names = jsonLines<{ agent: string; session: string }>(listed.stdout).map(
      (one) => `${one.agent} ${one.session}`,
    );
    assert.deepEqual(names.toSorted(), ['lead s-1', 'reader lead.s-1', 'writer lead.s-1']);
  });

  it('the user chooses among agents that no other names, and a note names the agents of other namespaces', async () => {
    const elsewhere = [agent('far', 'memory: {}'), `---\n${POLICY}`].map((text) =>
      text.replace('metadata: {', 'metadata: {namespace: b, '),
    );
    const manifests = `${MANIFESTS}${agent('solo', 'memory: {}')}${elsewhere.join('')}`;
    await using project = await openProject({ manifests, script: SCRIPT }, 'json');
    const unclear = await project.run('-m', 'go').ended;
    assert.equal(unclear.code, 2, unclear.stderr);
    assert.match(
      unclear.stderr,
      /default\/lead, .*default\/solo.*Choose the one that gets your messages with --agent/s,
    );
    const chosen = await project.run('--agent', 'lead', '--session', 's-1', '-m', 'go').ended;
    assert.equal(chosen.code, 0, chosen.stderr);
    assert.match(chosen.stderr, /agents of one namespace, and not b\/far/);
  });
});
