import type { LoadedManifests } from '../../api/manifests.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { AnyResource } from '../../api/v1alpha1/resources.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { TemperError } from '../../lib/errors.ts';

/** The agent to run, and the policy it names. Throws TEMPER_USAGE or TEMPER_NOT_FOUND with what the manifests contain. */
export function selectAgent(
  { objects }: LoadedManifests,
  agentName: string | undefined,
): { agent: Agent; policy: TrustPolicy } {
  const resources = objects.map(({ object }) => object);
  const agents = resources.filter((object): object is Agent => object.kind === 'Agent');
  const agent =
    agentName === undefined && agents.length === 1
      ? agents[0]
      : agents.find(({ metadata }) => metadata.name === agentName);
  if (agent === undefined) throw noAgent(agents, agentName);
  return { agent, policy: policyOf(agent, resources) };
}

function noAgent(agents: readonly Agent[], agentName: string | undefined): TemperError {
  if (agents.length === 0) {
    return new TemperError(
      'TEMPER_USAGE',
      'the manifests contain no Agent; name the file or folder of an Agent and its TrustPolicy with -f',
    );
  }
  const names = agents.map(({ metadata }) => metadata.name).join(', ');
  const problem =
    agentName === undefined ? `the manifests contain ${agents.length} agents` : `no agent is named "${agentName}"`;
  return new TemperError('TEMPER_USAGE', `${problem}; found: ${names}. Choose one with --agent`);
}

function policyOf(agent: Agent, resources: readonly AnyResource[]): TrustPolicy {
  const { name } = agent.spec.trustPolicyRef;
  const policy = resources.find(
    (object): object is TrustPolicy =>
      object.kind === 'TrustPolicy' &&
      object.metadata.name === name &&
      object.metadata.namespace === agent.metadata.namespace,
  );
  if (policy !== undefined) return policy;
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `TrustPolicy "${name}", which spec.trustPolicyRef of agent "${agent.metadata.name}" names, is not in the manifests; add its file with -f`,
  );
}
