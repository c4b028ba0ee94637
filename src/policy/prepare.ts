import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import { TOOL_PROFILES } from '../api/v1alpha1/agent/tool-profiles.ts';
import { TemperError } from '../lib/errors.ts';
import { type ActionRegistry, actionRegistry } from './actions/registry.ts';
import { actionsOf, effectiveLevel } from './levels.ts';
import { constrainedLevel } from './constraints/constrained-level.ts';
import type { ConstrainedLevel } from './constraints/constrained-level.ts';
import { patternSet } from './patterns/pattern-set.ts';
import type { PatternSet } from './patterns/pattern-set.ts';
import { pathSegments } from './patterns/pattern-subjects.ts';
import { AUTONOMY_PRESETS, automaticActions, riskOf } from './tables.ts';
import type { ActionType, AutonomyPreset, PolicySnapshot } from './types.ts';

/** One pinned argument: for a matching tool the argument is required and must match `allow`. */
export interface ArgumentRule {
  tool: PatternSet;
  argument: string;
  allow: PatternSet;
}

/** The patterns of the agent's own manifest. */
interface AgentPatterns {
  tools: PatternSet;
  deniedNames: PatternSet;
  /** The tools of `toolProfile`; undefined without one. */
  profile: PatternSet | undefined;
  network: PatternSet;
  memoryRead: PatternSet;
  memoryWrite: PatternSet;
  messages: PatternSet;
  spawn: PatternSet;
  kill: PatternSet;
  shell: PatternSet;
  publish: PatternSet;
  subscribe: PatternSet;
  argumentRules: readonly ArgumentRule[];
}

/** The patterns of the TrustPolicy. Undefined where an absent list differs in meaning from an empty one. */
interface PolicyPatterns {
  policyAllow: PatternSet;
  policyDeny: PatternSet;
  egress: PatternSet;
  forgeDomains: PatternSet;
  models: PatternSet | undefined;
  taintedNetwork: PatternSet | undefined;
  taintedTools: PatternSet | undefined;
  templates: PatternSet | undefined;
}

/** A snapshot with everything compiled that decisions need. */
export interface PreparedPolicy extends AgentPatterns, PolicyPatterns {
  snapshot: PolicySnapshot;
  level: ConstrainedLevel;
  autonomy: AutonomyPreset;
  /** Actions that need no approver. Undefined: no action needs one. */
  automatic: ReadonlySet<ActionType> | undefined;
  /** Actions of `rules.deny`. */
  deniedActions: ReadonlySet<ActionType>;
  /** Actions of `rules.requireApproval`. */
  approvedActions: ReadonlySet<ActionType>;
  /** The custom actions of the policy. */
  actions: ActionRegistry;
  taintedDeny: ReadonlySet<string>;
  /** Segments of absolute paths. */
  workspace: readonly string[];
  project: readonly string[];
}

const TAINTED_DENY_DEFAULT = ['forge', 'promote', 'schedule'];

/** Throws TEMPER_PATTERN_INVALID or TEMPER_MANIFEST_INVALID for an invalid rule; the decider then denies everything. */
export function preparePolicy(snapshot: PolicySnapshot): PreparedPolicy {
  const { spec: agent } = snapshot.agent;
  const { spec: policy } = snapshot.policy;
  const level = constrainedLevel(effectiveLevel(snapshot.level, policy), snapshot);
  const autonomy = effectiveAutonomy(policy.autonomy, agent.autonomy, level.rank);
  const workspace = root(snapshot.workspace, 'workspace');
  const actions = actionRegistry(policy);
  return {
    ...agentPatterns(agent),
    ...policyPatterns(policy),
    snapshot,
    level,
    autonomy,
    actions,
    automatic: automaticWith(autonomy, actionsOf(policy.rules?.allow, 'rules.allow', policy), actions),
    deniedActions: new Set(actionsOf(policy.rules?.deny, 'rules.deny', policy)),
    approvedActions: new Set(actionsOf(policy.rules?.requireApproval, 'rules.requireApproval', policy)),
    taintedDeny: new Set(policy.tainted?.deny ?? TAINTED_DENY_DEFAULT),
    workspace,
    project: snapshot.project === undefined ? workspace : root(snapshot.project, 'project'),
  };
}

function agentPatterns({ grants = {}, denyTools, toolProfile, arguments: pins = [] }: AgentSpec): AgentPatterns {
  return {
    tools: patternSet(grants.tools, 'tool'),
    deniedNames: patternSet(denyTools, 'tool'),
    profile: toolProfile === undefined ? undefined : patternSet(TOOL_PROFILES[toolProfile], 'tool'),
    network: patternSet(grants.network, 'host'),
    memoryRead: patternSet(grants.memory?.read, 'key'),
    memoryWrite: patternSet(grants.memory?.write, 'key'),
    messages: patternSet(grants.messages, 'name'),
    spawn: patternSet(grants.spawn, 'name'),
    kill: patternSet(grants.kill, 'name'),
    shell: patternSet(grants.shell, 'name'),
    publish: patternSet(grants.events?.publish, 'event'),
    subscribe: patternSet(grants.events?.subscribe, 'event'),
    argumentRules: pins.map((pin) => ({
      tool: patternSet([pin.tool], 'tool'),
      argument: pin.argument,
      allow: patternSet(pin.allow, 'path'),
    })),
  };
}

function policyPatterns({ tools, egress, forge, models, tainted, children }: TrustPolicySpec): PolicyPatterns {
  return {
    templates: children?.templates === undefined ? undefined : patternSet(children.templates, 'name'),
    policyAllow: patternSet(tools?.allow, 'tool'),
    policyDeny: patternSet(tools?.deny, 'tool'),
    egress: patternSet(egress?.allow, 'host'),
    forgeDomains: patternSet(forge?.domains, 'host'),
    models: models?.allow === undefined ? undefined : patternSet(models.allow, 'model'),
    taintedNetwork: tainted?.network === undefined ? undefined : patternSet(tainted.network, 'host'),
    taintedTools: tainted?.tools === undefined ? undefined : patternSet(tainted.tools, 'tool'),
  };
}

/** The tighter of the two presets. At the lowest level the result is never looser than Semi. */
function effectiveAutonomy(
  policy: AutonomyPreset = 'Semi',
  agent: AutonomyPreset = policy,
  rank: number,
): AutonomyPreset {
  const index = Math.max(
    AUTONOMY_PRESETS.indexOf(policy),
    AUTONOMY_PRESETS.indexOf(agent),
    rank === 0 ? AUTONOMY_PRESETS.indexOf('Semi') : 0,
  );
  return AUTONOMY_PRESETS[index] ?? 'Locked';
}

/** `rules.allow` adds actions that need no approver, except high-risk actions, and except under autonomy Locked. */
function automaticWith(
  autonomy: AutonomyPreset,
  exempt: readonly ActionType[],
  registry: ActionRegistry,
): ReadonlySet<ActionType> | undefined {
  const automatic = automaticActions(autonomy);
  if (automatic === undefined || autonomy === 'Locked') return automatic;
  const lowRisk = exempt.filter((action) => {
    const risk = registry.get(action)?.risk ?? riskOf(action);
    return risk === 'low' || risk === 'medium';
  });
  return new Set([...automatic, ...lowRisk]);
}

function root(path: string, field: string): readonly string[] {
  const segments = pathSegments(path);
  if (typeof segments === 'string' || !path.startsWith('/')) {
    throw new TemperError('TEMPER_MANIFEST_INVALID', `the ${field} must be an absolute path in plain form`);
  }
  return segments;
}
