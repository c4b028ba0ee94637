import { setTimeout as sleep } from 'node:timers/promises';
import type { SessionStreamLine } from '../../src/gateway-api/user-api.ts';
import { LABELS } from '../../src/api/cluster.ts';
import { openCluster } from '../../src/cli/cluster/cluster.ts';
import { GatewayUserClient } from '../../src/cli/cluster/gateway-user-client.ts';
import { ulids } from '../../src/lib/ids.ts';
import {
  agentObject,
  NamespaceAgents,
  namespaceObject,
  type PodObject,
  policyObject,
} from '../../test/e2e/support/fixture.ts';
import type { InstalledCluster } from '../../test/e2e/support/installed-cluster.ts';
import { quietIo } from '../../test/e2e/support/session-lines.ts';
import { pollValue } from '../../test/support/poll.ts';
import { quantile } from '../baseline/baseline.ts';
import { atMost, type Row, times } from './row.ts';

const AGENT = 'sleeper';
const TOOL = 'file_list';
/** A pod that ended uses the processor for some time. */
const QUIET_MS = 2_000;
const TIMEOUT_MS = 120_000;
const MAX_RATIO = 0.5;

/** Namespaces of the wakes: one without and one with a warm pod. */
export const WAKE_NAMESPACES = { cold: 'wake', warm: 'wake-warm' } as const;

/** A script whose agent calls a file tool first, and then answers. */
export const TOOL_SCRIPT = {
  rules: [
    { when: { lastTool: { name: TOOL } }, answer: { text: 'done' } },
    { answer: { toolCalls: [{ name: TOOL, arguments: { path: '.' } }] } },
  ],
};

/** The time from a message to an agent without a pod until the user sees the first tool result. */
export async function benchWakes(cluster: InstalledCluster, count: number): Promise<Row[]> {
  const cold = await wakes(cluster, WAKE_NAMESPACES.cold, count, (pods) => pods.length === 0);
  const warm = await wakes(cluster, WAKE_NAMESPACES.warm, count, ([pod, ...others]) => {
    return others.length === 0 && pod !== undefined && isWarm(pod) && isReady(pod);
  });
  const ratio = quantile(warm, 0.5) / quantile(cold, 0.5);
  return [
    row('real pods: message to an idle agent → first tool result, new pod', cold),
    row('real pods: message to an idle agent → first tool result, warm pod', warm),
    atMost('goal', 'real pods: wake with a warm pod relative to a new pod, p50', ratio, MAX_RATIO, times),
  ];
}

function row(what: string, each: readonly number[]): Row {
  const [p50 = 0, p95 = 0] = [0.5, 0.95].map((share) => quantile([...each], share));
  const value = `p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms`;
  return { kind: 'reference', what, value, note: `${each.length} wakes, one at a time` };
}

/** Milliseconds per wake. Before each one the pods of the namespace are as `isIdle` says. */
async function wakes(
  cluster: InstalledCluster,
  namespace: string,
  count: number,
  isIdle: (pods: readonly PodObject[]) => boolean,
): Promise<number[]> {
  const tools = { allow: [TOOL] };
  const spec = { idle: { scaleToZeroAfter: '3s' }, grants: { tools: [TOOL] } };
  await cluster.apply(namespaceObject(namespace));
  await cluster.apply(policyObject(namespace, { tools }), agentObject(namespace, AGENT, spec));
  const agents = new NamespaceAgents(cluster, namespace);
  const each: number[] = [];
  // The first wake includes one-time setup and is not measured.
  for (let wake = 0; wake <= count; wake += 1) {
    await agents.waitForReason(AGENT, 'Idle', 'Ready', TIMEOUT_MS);
    const settled = { timeoutMs: TIMEOUT_MS };
    await pollValue('the pods of an idle agent', () => agents.listPods(), isIdle, settled);
    await sleep(QUIET_MS);
    each.push(await timeOfToolResult(cluster, namespace));
  }
  return each.slice(1);
}

async function timeOfToolResult({ node }: InstalledCluster, namespace: string): Promise<number> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  await using cluster = await openCluster({ kubeconfig: node.kubeconfig, namespace }, quietIo(signal));
  const gateway = new GatewayUserClient(cluster, signal);
  // Creates the user's token and opens the connection.
  await gateway.call({ method: 'GET', path: 'top' });
  const start = performance.now();
  const body = { text: 'look' };
  const path = `agents/${AGENT}/messages`;
  const idempotencyKey = ulids.next('bench');
  const sent = (await gateway.call({ method: 'POST', path, body, idempotencyKey })) as {
    id: string;
    session: string;
    after: number;
  };
  const query = new URLSearchParams({ after: String(sent.after), message: sent.id, follow: 'true' });
  let elapsed: number | undefined;
  for await (const text of await gateway.lines(`agents/${AGENT}/sessions/${sent.session}/events?${query.toString()}`)) {
    if (text.trim() === '') continue;
    const line = JSON.parse(text) as SessionStreamLine;
    if (line.kind === 'failed') throw new Error(`the message failed: ${line.code} ${line.text}`);
    if (line.kind === 'event' && line.event.type === 'tool-result') {
      if (!line.event.ok) throw new Error(`the tool failed: ${line.event.summary}`);
      elapsed ??= performance.now() - start;
    }
  }
  if (elapsed === undefined) throw new Error('the message was answered without a tool');
  return elapsed;
}

function isWarm({ metadata }: PodObject): boolean {
  return metadata.labels?.[LABELS.agentUid] === undefined;
}

function isReady({ status }: PodObject): boolean {
  return status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;
}
