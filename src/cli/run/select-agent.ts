import type { LoadedManifests } from '../../api/manifests.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { CapabilitySpec } from '../../api/v1alpha1/capability.ts';
import type { AnyResource } from '../../api/v1alpha1/resources.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { patternSet } from '../../policy/patterns/pattern-set.ts';
import type { AgentDefinition } from '../../standalone/team/member.ts';

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

/** The agent of the user and the other agents of its namespace that it can work with. */
export interface SelectedTeam extends AgentDefinition {
  /** All of them, the agent of the user first. */
  readonly agents: readonly AgentDefinition[];
  /** The agents of other namespaces, which do not run; undefined when there are none. */
  readonly note?: string | undefined;
}

/**
 * The agents to run. Without a choice the user speaks to the agent that no other one names in `grants.messages` or `grants.spawn`. Throws
 * what `selectAgent` throws.
 */
export function selectTeam(manifests: LoadedManifests, choice: AgentChoice): SelectedTeam {
  const resources = manifests.objects.map(({ object }) => object);
  const all = resources.filter((object): object is Agent => object.kind === 'Agent');
  const entry = choice.agent === undefined ? entryOf(all, choice) : undefined;
  const own = selectAgent(
    manifests,
    entry === undefined ? choice : { agent: entry.metadata.name, namespace: namespaceOf(entry) },
  );
  return teamOf(own, resources);
}

/** All agents of one namespace, for a run without messages of a user. Throws what `selectAgent` throws. */
export function selectServed(manifests: LoadedManifests, { namespace }: Pick<AgentChoice, 'namespace'>): SelectedTeam {
  const resources = manifests.objects.map(({ object }) => object);
  const all = resources.filter((object): object is Agent => object.kind === 'Agent');
  const namespaces = new Set(all.map(namespaceOf));
  const [first] = all.filter((agent) => namespace === undefined || namespaceOf(agent) === namespace);
  if (first === undefined) throw noAgent(all, 0, namespace === undefined ? {} : { namespace });
  if (namespace === undefined && namespaces.size > 1) {
    const names = printable([...namespaces].join(', '), 500);
    throw new TemperError('TEMPER_USAGE', `the manifests have agents in several namespaces: ${names}; add --namespace`);
  }
  return teamOf({ agent: first, policy: policyOf(first, resources) }, resources);
}

function teamOf(own: AgentDefinition, resources: readonly AnyResource[]): SelectedTeam {
  const all = resources.filter((object): object is Agent => object.kind === 'Agent');
  const isHere = (agent: Agent): boolean => namespaceOf(agent) === namespaceOf(own.agent);
  const others = all
    .filter((agent) => agent !== own.agent && isHere(agent))
    .map((agent) => ({ agent, policy: policyOf(agent, resources) }));
  const left = all.filter((agent) => !isHere(agent)).map((agent) => `${namespaceOf(agent)}/${agent.metadata.name}`);
  const note = `temper run starts the agents of one namespace, and not ${left.join(', ')}`;
  return { ...own, agents: [own, ...others], note: left.length === 0 ? undefined : printable(note, 1_000) };
}

/** Undefined when there is not exactly one: then the user has to choose. */
function entryOf(all: readonly Agent[], { namespace }: AgentChoice): Agent | undefined {
  const candidates = all.filter((agent) => namespace === undefined || namespaceOf(agent) === namespace);
  const free = candidates.filter((agent) => !candidates.some((other) => other !== agent && names(other, agent)));
  return free.length === 1 ? free[0] : undefined;
}

function names(agent: Agent, other: Agent): boolean {
  if (namespaceOf(agent) !== namespaceOf(other)) return false;
  const { messages = [], spawn = [] } = agent.spec.grants ?? {};
  return patternSet([...messages, ...spawn], 'name').has(other.metadata.name);
}

/** A note on each object that a run does not use, so that its missing effect is no surprise; undefined when there is none. */
export function unusedObjectsNote({ objects }: LoadedManifests): string | undefined {
  const unused = objects.filter(({ object }) => !isUsed(object));
  if (unused.length === 0) return undefined;
  const names = unused.map(({ object }) => `${object.kind}/${object.metadata.name}`).join(', ');
  return `temper run uses Agents, TrustPolicies, and Capabilities with an HTTP, MCP or A2A backend or without a tool only, and ignores ${printable(names, 500)}`;
}

function isUsed(object: AnyResource): boolean {
  if (object.kind === 'Capability') return object.spec.type !== 'Tool' || isExecuted(object.spec);
  return object.kind === 'Agent' || object.kind === 'TrustPolicy';
}

function isExecuted({ backend }: CapabilitySpec): boolean {
  return backend?.http !== undefined || backend?.mcp !== undefined || backend?.a2a !== undefined;
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
    `${printable(problem, 300)}; found: ${printable(names, 1_000)}. Choose the one that gets your messages with --agent and --namespace`,
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
