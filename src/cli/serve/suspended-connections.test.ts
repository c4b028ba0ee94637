import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { GatewayAuthorizer } from '../../egress/gateway-authorizer.ts';
import { ConnectionReporter } from '../../egress/proxy/connection-reporter.ts';
import { DEFAULT_LIMITS, OpenConnections } from '../../egress/proxy/open-connections.ts';
import { WatchedAgentDirectory } from '../../gateway/cluster/agent-directory.ts';
import { createDeliveryTokens, type DeliveryTokenClaims } from '../../gateway/delivery/token.ts';
import { type EgressDeps, reviewConnections } from '../../gateway/egress/connections.ts';
import type { EgressReport } from '../../gateway-api/egress/egress-api.ts';
import type { GatewayRequest } from '../../gateway-client/gateway-client.ts';
import type { AgentPod } from '../../identity/agent-pod.ts';
import { PodBindings } from '../../identity/pod-bindings.ts';
import { Store } from '../../kube/informer/store.ts';
import { TemperError } from '../../lib/errors.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { createIds } from '../../lib/ids.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';

const KEY = randomBytes(32);
const LONGEST_MS = 5_000;
const log = createLogger({ level: 'silent', destination: { write: () => true }, secrets: createSecretRedactor() });
const HOST = { host: 'api.example.com', port: 443 };
const OWNER = { agent: 'scout', agentUid: 'a-1', namespace: 'team-a', session: 's-1', message: 'm-1' };
const CLAIMS: DeliveryTokenClaims = {
  ...OWNER,
  podUid: 'pod-1',
  root: 'm-1',
  depth: 0,
  deadline: '2026-05-04T13:00:00Z',
  at: { streamSequence: 1, deliveries: 1 },
};

type Suspended = 'agent' | 'policy';
/** What becomes of a report, by its number and whether the agent is suspended already. */
type Network = (number: number, suspended: boolean) => 'answered' | 'late' | 'lost' | 'refused';

const NETWORKS: Readonly<Record<string, Network>> = {
  'answers at once': () => 'answered',
  'answers as late as it may': () => 'late',
  'answers every second report': (number) => (number % 2 === 0 ? 'answered' : 'lost'),
  'answers two of seven reports': (number) => (number % 7 < 2 ? 'late' : 'refused'),
  'answers no more': (_number, suspended) => (suspended ? 'lost' : 'late'),
  'refuses connections': (_number, suspended) => (suspended ? 'refused' : 'answered'),
};

function buildAgent(suspend: boolean): Agent {
  const metadata = { name: 'scout', namespace: 'team-a', uid: 'a-1', generation: suspend ? 2 : 1 };
  const spec = {
    trustPolicyRef: { name: 'p' },
    model: { primary: 'openai/a' },
    prompt: { system: 'x' },
    grants: { network: ['api.example.com'] },
    ...(suspend ? { suspend } : {}),
  };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', metadata, spec, status: { level: 'standard' } };
}

function buildPolicy(suspend: boolean): TrustPolicy {
  const metadata = { name: 'p', namespace: 'team-a', uid: 'p-1', generation: suspend ? 2 : 1 };
  const spec = {
    level: { initial: 'standard' },
    egress: { allow: ['*.example.com'] },
    ...(suspend ? { suspend } : {}),
  };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata, spec };
}

/** An egress proxy and a gateway, with the stores that the watches of the gateway fill. Only the test moves their clock. */
function openCluster(network: Network) {
  const clock = new FakeClock('2026-05-04T12:00:00Z');
  const [agents, policies] = [new Store<Agent>(), new Store<TrustPolicy>()];
  const directory = new WatchedAgentDirectory(agents, policies, new PodBindings<Agent>(agents, new Store<AgentPod>()));
  agents.set(buildAgent(false));
  policies.set(buildPolicy(false));
  const tokens = createDeliveryTokens(() => [KEY]);
  const granted = { reserve: async () => ({ granted: true, id: 'r' }), commit: async () => undefined };
  const deps = {
    clock,
    directory,
    deliveryTokens: tokens,
    identity: { isStillBound: () => true },
    sessions: { marks: async () => ({ tainted: false, hasPrivateData: false }) },
    approvals: { permitsHost: async () => false },
    ledger: { ledger: () => granted },
  } as unknown as EgressDeps;
  let reports = 0;
  const call = async ({ body, op }: GatewayRequest) => {
    const isSuspended = directory.byUid('a-1')?.suspended === true;
    const fate = network(reports, isSuspended);
    reports += 1;
    const answer =
      fate === 'lost' || fate === 'refused' ? undefined : await reviewConnections(body as EgressReport, deps, op);
    const remaining = op.deadline - clock.monotonic();
    if (fate === 'late') await clock.sleep(remaining - 1, op.signal);
    if (fate === 'lost') await clock.sleep(remaining, op.signal);
    if (answer === undefined) throw new TemperError('TEMPER_GATEWAY_UNAVAILABLE', 'no gateway answers');
    return answer;
  };
  const connections: OpenConnections = new OpenConnections({
    limits: DEFAULT_LIMITS,
    ids: createIds(() => 0, Math.random),
    onReportDue: () => reporter.due(),
  });
  const reporter = new ConnectionReporter({ clock, log, connections, authorizer: new GatewayAuthorizer({ call }) });
  const connection = connections.open(
    { caller: 'Pod', agentUid: 'a-1', remainingMs: 600_000 },
    { deliveryToken: tokens.sign(CLAIMS), address: '10.0.0.7', ...HOST },
  );
  const suspend = (what: Suspended): void => {
    if (what === 'agent') agents.set(buildAgent(true));
    else policies.set(buildPolicy(true));
  };
  return { clock, connections, connection, reporter, suspend };
}

/** Milliseconds from the suspension to the end of the connection, and its reason. */
async function timeToEnd(network: Network, what: Suspended, after: number): Promise<{ waited: number; code: string }> {
  const { clock, connections, connection, reporter, suspend } = openCluster(network);
  const stop = new AbortController();
  const running = reporter.run(stop.signal);
  await clock.advance(after);
  const before = connection.signal.aborted ? String(connection.signal.reason) : 'open';
  suspend(what);
  let waited = 0;
  for (; !connection.signal.aborted && waited <= LONGEST_MS; waited += 50) await clock.advance(50);
  const { code } = (connection.signal.reason ?? { code: 'none' }) as TemperError;
  connections.close(connection);
  stop.abort();
  await clock.advance(LONGEST_MS);
  await running;
  assert.equal(before, 'open', 'before the suspension');
  return { waited, code };
}

describe('the connections of a suspended agent', () => {
  for (const [name, network] of Object.entries(NETWORKS)) {
    it(`an open connection ends within five seconds of a suspension when the gateway ${name}`, async () => {
      const waits: number[] = [];
      const codes = new Set<string>();
      // Of every moment between two reports, and with what fails before.
      for (let after = 0; after <= 5_000; after += 250) {
        const { waited, code } = await timeToEnd(network, after % 500 === 0 ? 'agent' : 'policy', after);
        assert.ok(waited <= LONGEST_MS, `a suspension at ${after} ms ended the connection after ${waited} ms`);
        waits.push(waited);
        codes.add(code);
      }
      assert.ok(Math.max(...waits) > 1_000, `${waits.join()}: the suspension waits for a report`);
      const ends = ['TEMPER_AGENT_SUSPENDED', 'TEMPER_GATEWAY_UNAVAILABLE'];
      assert.ok(
        [...codes].every((code) => ends.includes(code)),
        [...codes].join(),
      );
      if (!name.includes('no more') && !name.includes('refuses')) assert.ok(codes.has('TEMPER_AGENT_SUSPENDED'));
    });
  }
});
