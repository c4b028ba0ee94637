import { resolve } from 'node:path';
import { type LoadedManifests, loadManifests } from '../../api/manifests.ts';
import { BUILTIN_LEVELS, DEFAULT_LEVELS } from '../../api/v1alpha1/actions.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import { bindingOf, effectiveLevels } from '../../policy/trust/effective.ts';
import type { CategoryLevels, PolicySnapshot } from '../../policy/types.ts';
import { policyHint } from '../run/select-agent.ts';
import { usageError } from './policy-question.ts';

type TemperObject = LoadedManifests['objects'][number]['object'];

/** The agent of a question, as the manifests have it. */
export interface AgentQuestion {
  paths: string[];
  /** Optional when the manifests contain one agent. */
  agent?: string;
  /** Namespace of the agent, when agents of several namespaces have its name. */
  namespace?: string;
  /** Default: the policy's initial level, and those of its tool categories. */
  level?: string;
  tainted?: boolean;
  /** As for a session with private data, which matters in a tainted one. */
  private?: boolean;
}

/** The agent with its policy, and the objects of the manifests. Throws TEMPER_USAGE and TEMPER_MANIFEST_UNREADABLE. */
export async function loadSnapshot(
  options: AgentQuestion,
  cwd: string,
): Promise<{ snapshot: PolicySnapshot; objects: TemperObject[]; loaded: LoadedManifests }> {
  const paths = options.paths.map((path) => resolve(cwd, path));
  const loaded = await loadManifests(paths, { patterns: PATTERN_RULES });
  const agent = agentOf(loaded, options);
  const policy = policyOf(loaded, agent);
  assertLevel(options.level, policy);
  const snapshot: PolicySnapshot = {
    agent: { name: agent.metadata.name, namespace: namespaceOf(agent), spec: agent.spec },
    policy: { name: policy.metadata.name, spec: policy.spec },
    level: options.level ?? policy.spec.level?.initial ?? DEFAULT_LEVELS.initial,
    ...(options.level === undefined ? { categoryLevels: initialCategoryLevels(agent, policy) } : {}),
    tainted: options.tainted === true,
    hasPrivateData: options.private === true,
    workspace: '/workspace',
  };
  return { snapshot, objects: loaded.objects.map(({ object }) => object), loaded };
}

/** Those of a new agent. */
function initialCategoryLevels(agent: Agent, policy: TrustPolicy): CategoryLevels {
  return effectiveLevels(undefined, bindingOf(agent, policy), policy.spec).categories;
}

/** Refuses a level that the policy does not have; a misspelt level would deny everything. */
function assertLevel(level: string | undefined, { spec, metadata }: TrustPolicy): void {
  const known = [...BUILTIN_LEVELS, ...(spec.levels ?? []).map(({ name }) => name)];
  if (level === undefined || known.includes(level)) return;
  throw usageError(`--level "${level}" is not a level of TrustPolicy "${metadata.name}"; it has ${known.join(', ')}`);
}

function agentOf({ objects, problems }: LoadedManifests, { agent: name, namespace }: AgentQuestion): Agent {
  const agents = objects.flatMap(({ object }) => (object.kind === 'Agent' ? [object] : []));
  const candidates = agents.filter(
    (agent) =>
      (name === undefined || agent.metadata.name === name) &&
      (namespace === undefined || namespaceOf(agent) === namespace),
  );
  const [agent] = candidates;
  if (agent !== undefined && candidates.length === 1) return agent;
  const names = agents.map(qualifiedName).join(', ');
  const problemHint = problems.length === 0 ? '' : `; ${problems.length} problems, see temper validate`;
  if (candidates.length > 1)
    throw usageError(`the manifests contain several such agents; choose one with --agent and --namespace: ${names}`);
  const where = namespace === undefined ? '' : ` in namespace "${namespace}"`;
  const missing = name === undefined ? `no agent${where}` : `no agent "${name}"${where}`;
  throw usageError(
    `${missing} in the manifests${names === '' ? '; add the file of an Agent with -f' : `; found: ${names}`}${problemHint}`,
  );
}

/** With the namespace when it is not the default one. */
function qualifiedName(agent: Agent): string {
  const namespace = namespaceOf(agent);
  return namespace === 'default' ? agent.metadata.name : `${namespace}/${agent.metadata.name}`;
}

function policyOf({ objects, problems }: LoadedManifests, agent: Agent): TrustPolicy {
  const { name } = agent.spec.trustPolicyRef;
  for (const { object } of objects) {
    if (object.kind !== 'TrustPolicy' || object.metadata.name !== name) continue;
    if (namespaceOf(object) === namespaceOf(agent)) return object;
  }
  throw usageError(
    problems.some(({ object }) => object === `TrustPolicy/${name}`)
      ? `TrustPolicy "${name}" of agent "${agent.metadata.name}" is not valid; see temper validate`
      : `TrustPolicy "${name}" of agent "${agent.metadata.name}" is not in the manifests; ${policyHint(
          agent,
          objects.map(({ object }) => object),
        )}`,
  );
}

export function namespaceOf({ metadata }: { metadata: { namespace?: string } }): string {
  return metadata.namespace ?? 'default';
}
