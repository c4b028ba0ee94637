import { resolve } from 'node:path';
import { type LoadedManifests, loadManifests } from '../../api/manifests.ts';
import { BUILTIN_LEVELS, DEFAULT_LEVELS } from '../../api/v1alpha1/actions.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { isTemperError } from '../../lib/errors.ts';
import { explainCall } from '../../engine/explain-call.ts';
import { categoryOf } from '../../policy/category-decider.ts';
import { createDecider } from '../../policy/decider.ts';
import { bindingOf, effectiveLevels } from '../../policy/trust/effective.ts';
import type { CategoryLevels, ExplainedDecision, PolicyRequest, PolicySnapshot } from '../../policy/types.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { policyHint } from '../run/select-agent.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import { type PolicyQuestion, toPolicyRequest, usageError } from './policy-question.ts';

export interface PolicyExplainOptions extends PolicyQuestion {
  paths: string[];
  /** Optional when the manifests contain one agent. */
  agent?: string;
  /** Namespace of the agent, when agents of several namespaces have its name. */
  namespace?: string;
  /** Default: the policy's initial level, and those of its tool categories. */
  level?: string;
  tainted?: boolean;
  output: 'text' | 'json';
}

/**
 * Prints the decision and every evaluated rule. Executes and records nothing.
 * Exit 0: allowed, or an approver would decide; 1: denied; 2: invalid question or unreadable manifests.
 */
export async function policyExplain(
  options: PolicyExplainOptions,
  tools: readonly ToolDescriptor[],
  io: CliIo,
): Promise<number> {
  try {
    const request = toPolicyRequest(options, tools);
    const snapshot = await snapshotOf(options, io.cwd);
    const decider = createDecider(snapshot);
    const { workspace } = snapshot;
    const explained = explainCall({ decider, tools, schemas: createSchemaCompiler(), workspace }, request);
    const level = levelFor(request, snapshot) ?? decider.level;
    if (options.output === 'json') writeJson(snapshot, level, explained, io);
    else io.out(textOf(snapshot, level, explained));
    return explained.effect === 'Deny' ? EXIT.refused : EXIT.ok;
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_USAGE') && !isTemperError(error, 'TEMPER_MANIFEST_UNREADABLE')) throw error;
    io.error(`temper: ${error.code}: ${error.message}\n`);
    return EXIT.usage;
  }
}

async function snapshotOf(options: PolicyExplainOptions, cwd: string): Promise<PolicySnapshot> {
  const paths = options.paths.map((path) => resolve(cwd, path));
  const loaded = await loadManifests(paths, { patterns: PATTERN_RULES });
  const agent = agentOf(loaded, options);
  const policy = policyOf(loaded, agent);
  assertLevel(options.level, policy);
  return {
    agent: { name: agent.metadata.name, namespace: namespaceOf(agent), spec: agent.spec },
    policy: { name: policy.metadata.name, spec: policy.spec },
    level: options.level ?? policy.spec.level?.initial ?? DEFAULT_LEVELS.initial,
    ...(options.level === undefined ? { categoryLevels: initialCategoryLevels(agent, policy) } : {}),
    tainted: options.tainted === true,
    workspace: '/workspace',
  };
}

/** Those of a new agent. */
function initialCategoryLevels(agent: Agent, policy: TrustPolicy): CategoryLevels {
  return effectiveLevels(undefined, bindingOf(agent, policy), policy.spec).categories;
}

/** The level of the category of the request, if it has its own. */
function levelFor(request: PolicyRequest, { categoryLevels = {} }: PolicySnapshot): string | undefined {
  const category = categoryOf(request);
  return category === undefined ? undefined : categoryLevels[category];
}

/** Refuses a level that the policy does not have; a misspelt level would deny everything. */
function assertLevel(level: string | undefined, { spec, metadata }: TrustPolicy): void {
  const known = [...BUILTIN_LEVELS, ...(spec.levels ?? []).map(({ name }) => name)];
  if (level === undefined || known.includes(level)) return;
  throw usageError(`--level "${level}" is not a level of TrustPolicy "${metadata.name}"; it has ${known.join(', ')}`);
}

function agentOf({ objects, problems }: LoadedManifests, { agent: name, namespace }: PolicyExplainOptions): Agent {
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

function namespaceOf({ metadata }: { metadata: { namespace?: string } }): string {
  return metadata.namespace ?? 'default';
}

function writeJson(snapshot: PolicySnapshot, level: string, explained: ExplainedDecision, io: CliIo): void {
  const { effect, rule, reason, risk, trace } = explained;
  writeJsonLine(io, {
    agent: snapshot.agent.name,
    policy: snapshot.policy.name,
    level,
    tainted: snapshot.tainted,
    effect,
    rule,
    reason,
    risk,
    trace: trace.map((step) => ({ ...step })),
  });
}

const MARKS = { passed: '·', allowed: '✓', denied: '✗', escalated: '?', 'not-applicable': '-' } as const;

function textOf(snapshot: PolicySnapshot, level: string, explained: ExplainedDecision): string {
  const { effect, rule, reason, risk, trace } = explained;
  const width = Math.max(...trace.map((step) => step.rule.length));
  const lines = trace.map((step) => `  ${MARKS[step.verdict]} ${step.rule.padEnd(width)}  ${step.detail}`);
  const tainted = snapshot.tainted ? ' · tainted' : '';
  return [
    `${effect}  by ${rule}  (risk ${risk})`,
    reason,
    '',
    `Agent ${snapshot.agent.name} · policy ${snapshot.policy.name} · level ${level}${tainted}`,
    ...lines,
    '',
  ].join('\n');
}
