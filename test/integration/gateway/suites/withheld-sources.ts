import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { it } from 'node:test';
import type { SessionStreamLine, UserMessageReceipt } from '../../../../src/gateway-api/user-api.ts';
import { writeGatewayConfig } from '../../../../src/gateway-client/certificates.testing.ts';
import { isJsonObject } from '../../../../src/lib/json.ts';
import type { ReplayScript } from '../../../../src/models/replay/script/script.ts';
import { BUCKETS, bucketStream, bucketSubject } from '../../../../src/nats/jetstream/names.ts';
import { messageCounts } from '../../../../src/nats/jetstream/stream-reader.ts';
import { createNatsInbox } from '../../../../src/nats/inbox/inbox.ts';
import { createPendingCalls } from '../../../../src/nats/pending-calls.ts';
import { createSessionStore } from '../../../../src/nats/sessions/session-store.ts';
import { RoleProcess } from '../../../../src/pod/pod.testing.ts';
import type { RegisteredTool } from '../../../../src/tempering/types.ts';
import type { GatewayFixture, GatewayReplica } from '../../../support/gateway/gateway-fixture.ts';
import { judgeAnswer } from '../../../support/gateway/review-answers.ts';
import { streamsWithText } from '../../../support/nats/stored-text.ts';
import { poll } from '../../../support/poll.ts';
import type { TraceCollector } from '../../../support/trace-collector.ts';

/** Stands in the source of each tool of the test. */
const SECRET = 'kestrel4711';
const LINE = `const secretName = '${SECRET}';`;
const SOURCE = `function execute(input) {\n  ${LINE}\n  return { result: input.value * 2 + secretName.length - ${SECRET.length} };\n}`;
const SCHEMA = (name: string) => ({
  type: 'object',
  properties: { [name]: { type: 'number' } },
  required: [name],
  additionalProperties: false,
});
const forge = (code: string) => ({
  name: 'scale_value',
  description: 'Doubles a value.',
  inputSchema: SCHEMA('value'),
  outputSchema: SCHEMA('result'),
  implementation: { mode: 'sandbox', code },
  allowlist: [],
  testCases: [1, 2].map((value) => ({ input: { value }, expectedOutput: { result: 2 * value } })),
});
const call = (id: string, name: string, args: object) => ({ id, name, arguments: args as never });

/** The model and the judge quote the source in all that they write. */
export const WITHHELD_SCRIPT: ReplayScript = {
  rules: [
    {
      when: { model: 'judge' },
      answer: { text: judgeAnswer(true).replace('fine', `it has ${LINE.replaceAll("'", '')} ${SECRET}`) },
    },
    {
      when: { lastUser: 'double', turn: 1 },
      answer: { text: `I write ${LINE}`, toolCalls: [call('f1', 'forge_tool', forge(SOURCE))] },
    },
    {
      when: { lastUser: 'double', turn: 2 },
      answer: {
        text: `It has ${LINE}`,
        toolCalls: [call('c1', 'scale_value', { value: 21 }), call('m1', 'memory_set', { key: 'code', value: LINE })],
      },
    },
    { when: { lastUser: 'double' }, answer: { text: `It gave {{lastTool}}.\n${LINE}` } },
    {
      when: { lastUser: 'refused', turn: 1 },
      answer: { toolCalls: [call('f2', 'forge_tool', forge(`${SOURCE}\neval('${SECRET}');`))] },
    },
    { answer: { text: 'It was refused.' } },
  ],
};

export interface WithheldSetup {
  fixture: GatewayFixture;
  replica: GatewayReplica;
  /** The certificate authority of the gateways, their name and port. */
  endpoint: { url: string; name: string; authority: string };
  userToken: string;
  collector: TraceCollector;
  start: (process: RoleProcess) => RoleProcess;
}

const OBJECTS = '/apis/temper.dev/v1alpha1/namespaces/team-a';
const AGENT = '/v1/users/namespaces/team-a/agents/keeper';

/** An agent with `forge.persistSource: false`, in a real pod: its sources are in NATS encrypted, and nowhere else. */
export function withheldSourceTests(open: () => WithheldSetup): void {
  let session = '';
  let uid = '';
  let podToken = '';
  const processes: RoleProcess[] = [];
  const at = (part: string): string => `${open().fixture.folder}/keeper/${part}`;

  async function startPod(): Promise<void> {
    const { fixture, endpoint } = open();
    const models = { primary: 'default/keeper' };
    const rules = { requireApproval: ['code:create'] };
    await fixture.createPolicy('team-a', 'keeping', {
      level: { initial: 'restricted', ceiling: 'restricted' },
      models: { judge: 'default/keeper-judge' },
      forge: { limits: { minTestCases: 1 } },
      rules,
    });
    uid = await fixture.createAgent('team-a', 'keeper', {
      trustPolicyRef: { name: 'keeping' },
      model: models,
      grants: { tools: ['forge_tool', 'scale_*', 'memory_*'], memory: { read: ['**'], write: ['**'] } },
      forge: { enabled: true, modes: ['Sandbox'], persistSource: false },
    });
    const pod = await fixture.createPod('team-a', 'keeper-1');
    await fixture.bindPod('team-a', 'keeper', pod);
    podToken = await fixture.createPodToken('team-a', pod);
    for (const folder of ['', 'run', 'endpoints', 'workspace']) await mkdir(at(folder), { recursive: true });
    await writeGatewayConfig(at('endpoints'), { ...endpoint, token: podToken });
    startRole('sandbox', ['--agent-uid', String(process.getuid?.() ?? 0)]);
  }

  function startRole(role: 'agent' | 'sandbox', options: readonly string[] = []): RoleProcess {
    const endpoints = ['--endpoints', at('endpoints'), '--token', at('endpoints/token')];
    const own = role === 'agent' ? endpoints : options;
    const started = new RoleProcess(role, ['--run', at('run'), '--workspace', at('workspace'), ...own]);
    processes.push(started);
    return open().start(started);
  }

  async function send(text: string): Promise<UserMessageReceipt> {
    const { replica, userToken } = open();
    const body = { text, ...(session === '' ? {} : { session }) };
    const answer = await replica.call('POST', `${AGENT}/messages`, {
      userToken,
      key: `keeper-${text.replaceAll(' ', '-')}`,
      body,
    });
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text) as UserMessageReceipt;
  }

  async function follow({ id, session: of }: UserMessageReceipt): Promise<SessionStreamLine[]> {
    const { replica, userToken } = open();
    const path = `${AGENT}/sessions/${of}/events?follow=true&message=${id}`;
    const { text } = await replica.call('GET', path, { userToken });
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as SessionStreamLine]));
  }

  async function approveForge(): Promise<void> {
    const { fixture } = open();
    const calls = createPendingCalls(await fixture.nats.connect('gateway'));
    const pending = await poll('the request for an approval', async () =>
      (await calls.of(uid)).find(({ decision }) => decision === undefined),
    );
    assert.match(pending.arguments, /"withheld":"sha256:[0-9a-f]{64}"/);
    const { request, nonce, agent, tool, argumentsDigest, callId } = pending;
    const subject = { call: { agent, agentUid: uid, tool, argumentsDigest, callId } };
    const spec = { decision: 'Approve', nonce, approvedBy: { username: 'alice' }, subject };
    const object = { apiVersion: 'temper.dev/v1alpha1', kind: 'Approval', metadata: { name: request }, spec };
    await fixture.create(`${OBJECTS}/approvals`, object);
  }

  async function answered(text: string): Promise<SessionStreamLine[]> {
    const receipt = await send(text);
    const [lines] = await Promise.all([follow(receipt), approveForge()]);
    return lines;
  }

  /** Everything that is stored, logged or traced. */
  async function assertNowhere(when: string): Promise<void> {
    const { fixture, collector } = open();
    assert.deepEqual(await streamsWithText(await fixture.nats.connect('operator'), SECRET), [], when);
    for (const path of ['agents', 'trustpolicies', 'emergenttools', 'approvals', 'approvalrequests']) {
      const { body } = await fixture.plane.admin.call('GET', `${OBJECTS}/${path}`);
      assert.doesNotMatch(JSON.stringify(body), new RegExp(SECRET), `${when}: ${path}`);
    }
    const logs = [...fixture.logLines, ...processes.map(({ log }) => log), ...collector.bodies];
    assert.deepEqual(
      logs.filter((text) => text.includes(SECRET)),
      [],
      when,
    );
  }

  /** The keys of the encrypted store that belong to the agent. */
  async function encryptedKeys(): Promise<string[]> {
    const filter = bucketSubject(BUCKETS.sources, `${uid}.>`);
    const bus = await open().fixture.nats.connect('gateway');
    return Object.keys(await messageCounts(bus, bucketStream(BUCKETS.sources), filter));
  }

  it('a source that an agent withholds is nowhere in plain text while its forge waits for an approval, and the forge goes on in another pod', async () => {
    const { fixture } = open();
    await startPod();
    const first = startRole('agent');
    const receipt = await send('double it');
    session = receipt.session;
    const inbox = createNatsInbox(await fixture.nats.connect('gateway'));
    await poll('the parked forge', async () => (await inbox.parked(uid)).length === 1);
    assert.equal(await first.end('SIGKILL'), null);
    await assertNowhere('a parked forge');
    assert.match((await encryptedKeys()).join(), /\.calls\./);
    startRole('agent');
    await approveForge();
    const lines = await follow(receipt);
    const last = lines.at(-1);
    assert.ok(last?.kind === 'reply', JSON.stringify(last));
    assert.match(last.text, /^It gave .*\n\[source withheld\];$/);
    const events = lines.flatMap((line) => (line.kind === 'event' ? [line.event] : []));
    assert.ok(events.some(({ type }) => type === 'forge-accepted'));
    const results = events.flatMap((event) => (event.type === 'tool-result' ? [`${event.tool} ${event.ok}`] : []));
    // The last two run at the same time.
    assert.deepEqual(results.toSorted(), ['forge_tool true', 'memory_set true', 'scale_value true']);
    await assertNowhere('an accepted tool');
  });

  it('the pod gets the tool with its source, its history has a marker, and a refused forge leaves no source', async () => {
    const { fixture, replica } = open();
    const answer = await replica.call('GET', `/v1/sessions/${session}/tools`, { token: podToken });
    const [tool] = JSON.parse(answer.text) as RegisteredTool[];
    assert.ok(tool?.sourceWithheld === true && tool.artifact.implementation.source?.includes(SECRET));
    const [key, ...others] = await encryptedKeys();
    assert.deepEqual(others, [], 'the arguments of the forge are deleted with its result');
    assert.equal(key?.split('.').at(-1), tool.digest.slice('sha256:'.length));
    const { items } = await createSessionStore(await fixture.nats.connect('gateway'), uid).load(session);
    const stored = items.flatMap((item) => (item.role === 'assistant' ? item.toolCalls : []))[0];
    const marker: unknown = JSON.parse(stored?.arguments ?? '');
    assert.ok(
      isJsonObject(marker as never) &&
        /sha256/.test(JSON.stringify(marker)) &&
        /"bytes":\d+/.test(JSON.stringify(marker)),
    );
    const refused = await answered('a refused one');
    const gates = refused.flatMap((line) =>
      line.kind === 'event' && line.event.type === 'forge-refused' ? [line.event] : [],
    );
    assert.deepEqual(
      gates.map(({ message }) => message),
      ['[source withheld]'],
    );
    await assertNowhere('a refused forge');
  });
}
