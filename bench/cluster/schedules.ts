import { TYPES } from '../../src/operator/kube/types.ts';
import type { KubeClient } from '../../src/kube/client/kube-client.ts';
import { isJsonObject, parseUntrustedJson } from '../../src/lib/json.ts';
import type { JetStreamConnection } from '../../src/nats/connection/connection.ts';
import { STREAMS } from '../../src/nats/jetstream/names.ts';
import { EVERY_SUBJECT, readMessages } from '../../src/nats/jetstream/stream-reader.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildAgent } from '../../test/support/builders.ts';
import { startNatsFixture } from '../../test/support/nats/nats-fixture.ts';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { quantile } from '../baseline/baseline.ts';
import { runConcurrently, runningAgents } from './support/agents.ts';
import { BenchCluster } from './support/bench-cluster.ts';
import type { LoadReport } from './support/load.ts';
import { atMost, plain, type Row, seconds } from './row.ts';

const NAMESPACE = 'team-a';
const CONCURRENCY = 50;
const MINUTE_MS = 60_000;
/** From the last schedule that was set until the first run: the operator reads it, and stores when its first run is due. */
const AHEAD_MS = 15_000;
/** After the minute, for runs that are late. */
const AFTER_MS = 40_000;
const GOAL_SECONDS = 1;

/** One message of a run: of which agent, due when, and stored when, in epoch milliseconds. */
interface Run {
  readonly subject: string;
  readonly due: number;
  readonly stored: number;
}

/** All agents have one run in the same minute. No pod works on it, so an agent has one run only. */
export async function benchSchedules(agents: number): Promise<Row[]> {
  const nats = await startNatsFixture();
  await using cluster = await BenchCluster.open(undefined, async () => nats);
  await cluster.createAgentsNamespace(NAMESPACE);
  const operator = await cluster.startOperator();
  await operator.waitUntilReady();
  await using running = await runningAgents(cluster, NAMESPACE);
  await runConcurrently(agents, CONCURRENCY, (index) => {
    const agent = buildAgent(NAMESPACE, `agent-${index}`);
    return running.timeUntilReady(agent, () => cluster.client.create(TYPES.agents, agent, NEVER_ABORTED));
  });
  const connection = await nats.connect('gateway');
  const endLoad = cluster.measure(operator);
  const minute = await schedule(cluster.client, agents);
  await sleep(minute + MINUTE_MS + AFTER_MS - Date.now());
  const spent = endLoad();
  const found = (await runs(connection)).filter(({ due }) => due >= minute && due < minute + MINUTE_MS);
  return rowsOf(found, agents, spent);
}

/** Gives each agent one run in the minute that follows, at a second of its own. Returns when the minute starts. */
async function schedule(client: KubeClient, agents: number): Promise<number> {
  const started = Date.now();
  // As long as the last agents took, on a machine of any speed: the minute has to be known before the first one is set.
  const minute = Math.ceil((started + agents * 100 + AHEAD_MS) / MINUTE_MS) * MINUTE_MS;
  const at = new Date(minute);
  const set = async (index: number): Promise<number> => {
    const cron = `${index % 60} ${at.getUTCMinutes()} ${at.getUTCHours()} ${at.getUTCDate()} ${at.getUTCMonth() + 1} *`;
    const spec = { schedule: { mode: 'Periodic', cron, message: '{{time}}' } };
    await client.patch(TYPES.agents, { namespace: NAMESPACE, name: `agent-${index}` }, { spec }, NEVER_ABORTED);
    return 0;
  };
  await runConcurrently(agents, CONCURRENCY, set);
  if (Date.now() + AHEAD_MS > minute) throw new Error('the schedules were set too late: use fewer agents');
  return minute;
}

async function runs(connection: JetStreamConnection): Promise<Run[]> {
  const found: Run[] = [];
  for await (const { subject, data, timestamp } of readMessages(connection, STREAMS.inbox, EVERY_SUBJECT)) {
    const message = parseUntrustedJson(Buffer.from(data).toString('utf8'));
    if (!isJsonObject(message) || message.source !== 'Schedule' || typeof message.text !== 'string') continue;
    found.push({ subject, due: Date.parse(message.text), stored: Date.parse(timestamp) });
  }
  return found;
}

function rowsOf(found: readonly Run[], agents: number, spent: LoadReport): Row[] {
  const late = found.map(({ due, stored }) => (stored - due) / 1_000);
  const agentsWithRun = new Set(found.map(({ subject }) => subject)).size;
  const what = `${agents} schedules due in one minute`;
  const note = `p50 ${seconds(quantile(late, 0.5))}, last ${seconds(Math.max(...late))}`;
  return [
    atMost('requirement', `${what}: missed`, agents - agentsWithRun, 0, plain, { spent }),
    atMost('requirement', `${what}: started twice`, found.length - agentsWithRun, 0, plain),
    atMost('goal', `${what}: in the inbox after the due time, p99`, quantile(late, 0.99), GOAL_SECONDS, seconds, {
      note,
    }),
  ];
}
