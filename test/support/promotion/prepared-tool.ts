import type { ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import { digestOf } from '../../../src/lib/canonical.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createToolEvidence } from '../../../src/nats/promotion/evidence.ts';
import { createPromotionRequests } from '../../../src/nats/promotion/promotion-requests.ts';
import { openSessionRegistry } from '../../../src/nats/sessions/session-registry.ts';
import type { ToolSources } from '../../../src/nats/sources/tool-sources.ts';
import { sessionTool } from '../../../src/tempering/registry/registered-tool.ts';
import { anAcceptance, anArtifact } from '../../../src/tempering/tempering.testing.ts';
import type { ToolUse } from '../../../src/tempering/types.ts';
import type { ApiServerFixture } from '../api-server/api-server-fixture.ts';
import { buildAgent, buildTrustPolicy } from '../builders.ts';
import { pollValue } from '../poll.ts';

const NAMESPACE = 'team-a';

/** What a test changes of a prepared tool and of its reported uses. */
export interface PreparedChange {
  artifact?: Partial<ToolArtifact>;
  /** By the number of the use, from 0. */
  use?: (index: number) => Partial<ToolUse>;
  /** The agent withholds its sources. */
  withheld?: boolean;
}

export type PreparedTool = Awaited<ReturnType<typeof prepareTool>>;

/** An agent with a policy of its own, a session tool that doubles a number, and reported uses for so many root messages. */
export async function prepareTool(
  { apiServer, gateway, sources }: { apiServer: ApiServerFixture; gateway: JetStreamConnection; sources?: ToolSources },
  name: string,
  { policy, uses = 5, change = {} }: { policy: object; uses?: number; change?: PreparedChange },
) {
  await apiServer.apply(buildTrustPolicy(NAMESPACE, { level: { initial: 'restricted' }, ...policy }, name));
  const persistSource = change.withheld !== true;
  const forge = { enabled: true, modes: ['Sandbox', 'Compose'], persistSource };
  await apiServer.apply(buildAgent(NAMESPACE, name, { trustPolicyRef: { name }, forge }));
  const uid = (await apiServer.getAgent(NAMESPACE, name)).metadata.uid;
  const prepared = await addTool(gateway, { name, uid }, { uses, change, sources });
  await pollValue(
    'the policy of the agent',
    () => apiServer.getAgent(NAMESPACE, name),
    ({ status }) => status !== undefined,
  );
  return prepared;
}

/** Another session tool of the agent, with its reported uses. */
export async function addTool(
  gateway: JetStreamConnection,
  { name, uid }: { name: string; uid: string },
  { uses = 5, change = {}, sources }: { uses?: number; change?: PreparedChange; sources?: ToolSources | undefined },
) {
  const caller = { agent: name, namespace: NAMESPACE, session: 's1', rootMessage: 'm', authorModel: 'replay/author' };
  const artifact = anArtifact(`double_${name.replaceAll('-', '_')}`, change.artifact);
  const accepted = sessionTool(anAcceptance(artifact), caller, new Date().toISOString());
  const tool = { ...accepted, sourceWithheld: change.withheld === true };
  await openSessionRegistry(gateway, { sources }).register(uid, tool, () => []);
  const use = (value: number): ToolUse => ({
    agent: name,
    namespace: NAMESPACE,
    session: 's1',
    digest: tool.digest,
    evidence: 'reported',
    rootMessage: `m-${value}`,
    input: { value },
    succeeded: true,
    milliseconds: 1,
    time: '2026-01-01T00:00:00Z',
    output: digestOf({ result: value * 2 }),
    ...change.use?.(value - 10),
  });
  const all = Array.from({ length: uses }, (_, index) => use(index + 10));
  await createToolEvidence(gateway).count(uid, { digest: tool.digest, namespace: NAMESPACE }, 'key', all);
  return { name, uid, tool, key: { agentUid: uid, digest: tool.digest } };
}

export function requestPromotion(gateway: JetStreamConnection, { uid, tool }: PreparedTool, revision = 0) {
  const promotion = { agentUid: uid, digest: tool.digest, session: 's1' };
  return createPromotionRequests(gateway).publish(promotion, revision);
}
