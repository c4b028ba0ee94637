import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parseAllDocuments } from 'yaml';
import type { ApprovalRequest } from '../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../src/api/v1alpha1/emergenttool.ts';
import type { SessionToolSummary } from '../../../src/gateway-api/user-api.ts';
import type { KubeObject } from '../../../src/kube/informer/store.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { poll, pollAssertion } from '../../support/poll.ts';
import { agentObject, NamespaceAgents, policyObject, replies } from '../support/fixture.ts';
import { type InstalledCluster, RELEASE_NAMESPACE, ROOT } from '../support/installed-cluster.ts';
import { killRunning, PROCESSES } from '../support/kills.ts';

type Stored<T> = KubeObject & T;

const TOOL = 'csv_rows';
const QUESTIONS = [
  'How many orders were paid in April, and what were they worth?',
  'And in May and June?',
  "Which region's revenue fell most between the second quarter and the third, and by how much?",
];
/** A promotion waits for the processes that were killed, and for the next look of the operator. */
const TIMEOUT_MS = 240_000;
const REVIEWER_DELAY_MS = 3_000;

/** Rules that the walks need in front of those of the quick start: slow reviewers, and two agents that write to each other. */
export function walkRules(rules: readonly { when?: { system?: string }; answer: object }[]): object[] {
  const asker = { system: 'You are asker' };
  const own = [
    { when: { ...asker, turn: 1 }, answer: { toolCalls: [{ name: 'agent_send', arguments: BALL }] } },
    { when: { ...asker, lastTool: { isError: false } }, answer: { text: 'passed on' } },
    { when: { ...asker, lastTool: { isError: true } }, answer: { text: 'kept: {{lastTool}}' } },
    { when: { system: 'You are receiver' }, answer: { text: 'heard: {{user}}' } },
  ];
  const slow = rules.map((rule) =>
    /auditor|reviewer/.test(rule.when?.system ?? '')
      ? { ...rule, answer: { ...rule.answer, delayMilliseconds: REVIEWER_DELAY_MS } }
      : rule,
  );
  return [...own, ...slow];
}
const BALL = { to: 'receiver', text: 'ball' };

/** A promotion and a parked call from beginning to end, in a namespace of their own, while each component is killed at one of their steps. */
export function killedWalks(current: () => InstalledCluster, times: number): void {
  describe('a promotion and a parked call while components are killed', () => {
    for (let time = 0; time < times; time += 1) {
      it(`walk ${time + 1}: a promotion ends in one decision, and nothing is in service without its approval`, () =>
        inNamespace(current(), `promoted-${time}`, walkPromotion));
      it(`walk ${time + 1}: an approved call is made once, and its reply arrives once`, () =>
        inNamespace(current(), `parked-${time}`, walkParkedCall));
    }
  });
}

async function inNamespace(
  cluster: InstalledCluster,
  namespace: string,
  walk: (cluster: InstalledCluster, namespace: string) => Promise<void>,
): Promise<void> {
  // The gateways may still be restarting after the kills of an earlier walk.
  const ready = ['rollout', 'status', 'deployment/temper-gateway', '--timeout=120s'];
  await cluster.kubectl(...ready, '-n', RELEASE_NAMESPACE);
  await walk(cluster, namespace);
  await cluster.kubectl('delete', 'namespace', namespace, '--wait=false');
}

/** The gateway while it counts the uses, then verifier, gateway, operator and NATS, one after the other, as the promotion goes on. */
async function walkPromotion(cluster: InstalledCluster, namespace: string): Promise<void> {
  await applyQuickstart(cluster, namespace);
  const session = await useTool(cluster, namespace);
  await killRunning(cluster, PROCESSES.gateway);
  const toolsOf = async (tier: string) =>
    (await listed<EmergentTool>(cluster, 'emergenttools', namespace)).filter(
      ({ spec, status }) => spec.artifact.name === TOOL && spec.tier === tier && status?.active === true,
    );
  const first = await verifierAtWork(cluster, undefined);
  await cluster.kubectl('delete', 'pod', first, '-n', RELEASE_NAMESPACE, '--force', '--grace-period=0');
  await verifierAtWork(cluster, first);
  await killRunning(cluster, PROCESSES.gateway);
  await killRunning(cluster, PROCESSES.operator);
  await stateOf(cluster, { namespace, session }, ['PanelReview', 'Promoted']);
  await killRunning(cluster, PROCESSES.gateway);
  await killRunning(cluster, PROCESSES['nats-server']);
  await poll('the tool at tier Agent', async () => (await toolsOf('Agent')).length === 1, { timeoutMs: TIMEOUT_MS });
  const request = await poll('the request for tier Shared', async () => (await requestsFor(cluster, namespace))[0], {
    timeoutMs: TIMEOUT_MS,
  });
  assert.deepEqual(await toolsOf('Shared'), [], 'nothing is shared without an approval');
  const approve = ['approve', request.metadata.name, '--reason', 'reads CSV', '-n', namespace];
  const { code, stderr } = await cluster.temper(...approve);
  assert.equal(code, 0, stderr);
  await killRunning(cluster, PROCESSES.operator);
  await killRunning(cluster, PROCESSES['nats-server']);
  await poll('the tool at tier Shared', async () => (await toolsOf('Shared')).length === 1, { timeoutMs: TIMEOUT_MS });
  const requests = await requestsFor(cluster, namespace);
  assert.deepEqual(
    requests.map(({ status }) => status?.decision),
    ['Approve'],
  );
  const audit = await cluster.temper('audit', 'show', TOOL, '-n', namespace);
  const promoted = [...audit.stdout.matchAll(/tool\.promoted .*? (Agent|Shared),/g)].map(([, tier]) => tier);
  assert.deepEqual(promoted, ['Agent', 'Shared'], `${audit.stdout}${audit.stderr}`);
  assert.equal(audit.stdout.match(/approval\.decided/g)?.length, 1, audit.stdout);
}

/** The gateway when the message arrives, the operator and NATS while the call waits, the pod when it is approved. */
async function walkParkedCall(cluster: InstalledCluster, namespace: string): Promise<void> {
  const agents = new NamespaceAgents(cluster, namespace);
  const messages = { grants: { tools: ['agent_send'], messages: ['receiver'] } };
  await applyQuickstart(cluster, namespace, ['Namespace']);
  await cluster.apply(
    policyObject(namespace, { tools: { allow: ['agent_send'] }, rules: { requireApproval: ['comms:internal'] } }),
    agentObject(namespace, 'asker', messages),
    agentObject(namespace, 'receiver'),
  );
  for (const name of ['asker', 'receiver']) await agents.waitForReason(name, 'Running');
  const { session } = await agents.send('asker', 'ball');
  await killRunning(cluster, PROCESSES.gateway);
  const pending = () => listed<ApprovalRequest>(cluster, 'approvalrequests', namespace);
  const request = await poll('the request of the call', async () => (await pending())[0], { timeoutMs: TIMEOUT_MS });
  await killRunning(cluster, PROCESSES.operator);
  await killRunning(cluster, PROCESSES['nats-server']);
  await pollAssertion('the gateway to say that no message was sent before the approval', async () =>
    assert.deepEqual(await agents.sessions('receiver'), []),
  );
  const approve = ['approve', request.metadata.name, '--reason', 'harmless', '-n', namespace];
  await poll('the approval', async () => (await cluster.temper(...approve)).code === 0);
  await killRunning(cluster, PROCESSES['the agent container']);
  await killRunning(cluster, PROCESSES.gateway);
  const [reply, ...others] = await poll(
    'the reply of asker',
    async () => {
      const found = replies(await agents.sessionLines('asker', session));
      return found.length > 0 && found;
    },
    { timeoutMs: TIMEOUT_MS },
  );
  assert.deepEqual(others, []);
  await assertSentOnce(agents, reply ?? '');
  const requests = await poll('the use of the approval', async () => {
    const found = await pending();
    return found.some(({ status }) => status?.usedAt !== undefined) && found;
  });
  assert.deepEqual(
    requests.map(({ status }) => status?.decision),
    ['Approve'],
  );
}

/** A pod that ended between the call and its stored result cannot know whether it was made: the agent gets an error, and no second call. */
async function assertSentOnce(agents: NamespaceAgents, reply: string): Promise<void> {
  if (reply !== 'passed on') {
    assert.match(reply, /TEMPER_APPROVAL_USED/);
    assert.ok((await agents.sessions('receiver')).length <= 1);
    return;
  }
  await pollAssertion('the only message of receiver', async () => {
    const [heard, ...more] = await agents.sessions('receiver');
    assert.deepEqual(more, []);
    assert.deepEqual(replies(await agents.sessionLines('receiver', heard?.session ?? '')), ['heard: ball']);
  });
}

/** The objects of the quick start in another namespace. */
async function applyQuickstart(cluster: InstalledCluster, namespace: string, kinds?: string[]): Promise<void> {
  const text = await cluster.kubectl('kustomize', join(ROOT, 'manifests/quickstart'));
  const objects = parseAllDocuments(text).map((document) => document.toJS() as KubeObject & { kind: string });
  const own = objects.filter(({ kind }) => kinds?.includes(kind) ?? true);
  await cluster.apply(
    ...own.map((object) => {
      const place = object.kind === 'Namespace' ? { name: namespace } : { namespace };
      return { ...object, metadata: { ...object.metadata, ...place } };
    }),
  );
}

/** Asks the questions of the quick start in one session, so that the tool has enough uses. Returns the session. */
async function useTool(cluster: InstalledCluster, namespace: string): Promise<string> {
  await cluster.waitFor('agent/analyst', 'Ready', namespace);
  let flags: string[] = [];
  let session = '';
  for (const question of QUESTIONS) {
    const send = ['send', 'analyst', question, ...flags, '--follow', '-n', namespace];
    const { code, stdout, stderr } = await cluster.temper(...send);
    assert.equal(code, 0, `${stdout}${stderr}`);
    session = /session (\S+)/.exec(stderr)?.[1] ?? session;
    flags = ['--session', session];
  }
  return session;
}

/** The name of a verifier pod, other than `known`, that runs a tool. */
async function verifierAtWork(cluster: InstalledCluster, known: string | undefined): Promise<string> {
  const selector = [
    '-n',
    RELEASE_NAMESPACE,
    '-l',
    'temper.dev/verification',
    '-o',
    'jsonpath={.items[*].metadata.name}',
  ];
  return poll(
    'a verifier pod at work',
    async () =>
      (await cluster.kubectl('get', 'pods', ...selector)).split(' ').find((name) => name !== '' && name !== known),
    { timeoutMs: TIMEOUT_MS },
  );
}

/** Waits for a state of the promotion of the tool. */
async function stateOf(
  cluster: InstalledCluster,
  { namespace, session }: { namespace: string; session: string },
  states: readonly string[],
): Promise<void> {
  await poll(
    `the state ${states.join(' or ')}`,
    async () => {
      const { stdout } = await cluster.temper('top', 'tools', 'analyst', '-n', namespace, '-o', 'json');
      const own = jsonLines<SessionToolSummary>(stdout).find((one) => one.name === TOOL && one.session === session);
      return states.includes(own?.promotion.state ?? '');
    },
    { timeoutMs: TIMEOUT_MS },
  );
}

async function requestsFor(cluster: InstalledCluster, namespace: string): Promise<Stored<ApprovalRequest>[]> {
  const all = await listed<ApprovalRequest>(cluster, 'approvalrequests', namespace);
  return all.filter(({ spec }) => spec.subject.promotion?.tool === TOOL);
}

async function listed<T>(cluster: InstalledCluster, kind: string, namespace: string): Promise<Stored<T>[]> {
  const { items } = JSON.parse(await cluster.kubectl('get', kind, '-n', namespace, '-o', 'json')) as {
    items: Stored<T>[];
  };
  return items;
}
