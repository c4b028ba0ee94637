import type { LoadedManifests } from '../../api/manifests.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { AnyResource } from '../../api/v1alpha1/resources.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** Which agent of the manifests to run; both members are optional when the manifests contain one agent. */
export interface AgentChoice {
  readonly agent?: string;
  readonly namespace?: string;
}

/** The agent to run, and the policy it names. Throws TEMPER_USAGE or TEMPER_NOT_FOUND with what the manifests contain. */
export function selectAgent({ objects }: LoadedManifests, choice: AgentChoice): { agent: Agent; policy: TrustPolicy } {
  const resources = objects.map(({ object }) => object);
  const agents = resources.filter((object): object is Agent => object.kind === 'Agent');
  const candidates = agents.filter(
    (agent) =>
      (choice.agent === undefined || agent.metadata.name === choice.agent) &&
      (choice.namespace === undefined || namespaceOf(agent) === choice.namespace),
  );
  const [agent] = candidates;
  if (agent === undefined || candidates.length > 1) throw noAgent(agents, candidates.length, choice);
  return { agent, policy: policyOf(agent, resources) };
}

/** A note on each object that a run does not use, so that its missing effect is no surprise; undefined when there is none. */
export function unusedObjectsNote({ objects }: LoadedManifests): string | undefined {
  const unused = objects.filter(({ object }) => object.kind !== 'Agent' && object.kind !== 'TrustPolicy');
  if (unused.length === 0) return undefined;
  const names = unused.map(({ object }) => `${object.kind}/${object.metadata.name}`).join(', ');
  return `temper run uses Agents and TrustPolicies only, and ignores ${printable(names, 500)}`;
}

function noAgent(agents: readonly Agent[], found: number, { agent, namespace }: AgentChoice): TemperError {
  if (agents.length === 0) {
    return new TemperError(
      'TEMPER_USAGE',
      'the manifests contain no Agent; name the file or folder of an Agent and its TrustPolicy with -f',
    );
  }
  const names = agents.map((known) => `${namespaceOf(known)}/${known.metadata.name}`).join(', ');
  const named = agent === undefined ? '' : ` named "${agent}"`;
  const where = namespace === undefined ? '' : ` in namespace "${namespace}"`;
  const problem =
    found === 0
      ? `the manifests contain no agent${named}${where}`
      : `the manifests contain ${found} agents${named}${where}`;
  return new TemperError(
    'TEMPER_USAGE',
    `${printable(problem, 300)}; found: ${printable(names, 1_000)}. Choose one with --agent and --namespace`,
  );
}

function policyOf(agent: Agent, resources: readonly AnyResource[]): TrustPolicy {
  const { name } = agent.spec.trustPolicyRef;
  const policy = resources.find(
    (object): object is TrustPolicy =>
      object.kind === 'TrustPolicy' && object.metadata.name === name && namespaceOf(object) === namespaceOf(agent),
  );
  if (policy !== undefined) return policy;
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `TrustPolicy "${name}", which spec.trustPolicyRef of agent "${agent.metadata.name}" names, is not in the manifests; ${policyHint(agent, resources)}`,
  );
}

/** The next step after a missing policy: often it is there, in another namespace. */
export function policyHint(agent: Agent, resources: readonly AnyResource[]): string {
  const { name } = agent.spec.trustPolicyRef;
  const namesakes = resources.filter(({ kind, metadata }) => kind === 'TrustPolicy' && metadata.name === name);
  if (namesakes.length === 0) return 'add its file with -f';
  const namespaces = namesakes.map((policy) => `"${namespaceOf(policy)}"`).join(', ');
  return `it exists in namespace ${namespaces}, and an agent uses policies of its own namespace, "${namespaceOf(agent)}", only`;
}

function namespaceOf({ metadata }: { metadata: { namespace?: string } }): string {
  return metadata.namespace ?? 'default';
}
