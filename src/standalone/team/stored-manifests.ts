import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { Clock } from '../../lib/clock.ts';
import { type Json, type JsonObject, member as memberOf } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { AgentDefinition } from './member.ts';

/**
 * Stores the applied manifests for `temper get` and `temper describe`. An agent without work in this run keeps the level of its last run:
 * `level` is undefined.
 */
export async function storeAgentManifests(
  records: RecordStore,
  clock: Clock,
  { agent, policy }: AgentDefinition,
  level?: string,
): Promise<void> {
  const storedForm = (resource: Agent | TrustPolicy, status: Json): JsonObject => {
    const creationTimestamp = clock.now().toISOString();
    return { ...resource, metadata: { ...resource.metadata, creationTimestamp }, status } as unknown as JsonObject;
  };
  const { name } = agent.metadata;
  const before = level === undefined ? memberOf((await records.get('agents', name)) ?? null, 'status') : { level };
  await records.put('trustpolicies', policy.metadata.name, storedForm(policy, {}));
  await records.put('agents', name, storedForm(agent, before ?? {}));
}
