import { printable } from '../../lib/printable.ts';
import type { ToolActions } from '../actions/registry.ts';
import { argumentRule } from './argument-pins.ts';
import { detectorRules } from '../detect/rules.ts';
import type { PreparedPolicy } from '../prepare.ts';
import { isDiscoveryTool, isForgeTool } from './rule-inputs.ts';
import type { ToolRuleInput } from './rule-inputs.ts';
import { parseSubject } from '../patterns/pattern-subjects.ts';
import { allowed, deny, escalate, notApplicable, passed } from './rule.ts';
import type { Rule } from './rule.ts';
import { taintedListNote, taintedRule } from './common.ts';
import { childToolRule, isChildTool } from './children.ts';
import { constraintRules } from './constraints.ts';
import { privateToolRule } from '../private-data/rules.ts';
import { ALWAYS_DENIED, LEVELS } from '../tables.ts';
import type { ForgeLimits, ToolCategory } from '../types.ts';

/** The rules in order. Rules about arguments are skipped for a listing, so a call is never allowed where its listing is denied. */
export function toolRules(prepared: PreparedPolicy, limits: ForgeLimits): Rule<ToolRuleInput>[] {
  return [
    ...hardDenyRules(prepared),
    grantRule(prepared, limits),
    profileRule(prepared),
    childToolRule(prepared),
    ...nameRules(prepared),
    ...constraintRules(prepared),
    argumentRule(prepared),
    privateToolRule(prepared),
    ...approvalRules(prepared),
    ...detectorRules(),
  ];
}

function hardDenyRules(prepared: PreparedPolicy): Rule<ToolRuleInput>[] {
  const policy = prepared.snapshot.policy.name;
  return [
    {
      id: 'action.unknown',
      check: ({ name, action, does }) =>
        does.own !== undefined
          ? undefined
          : deny(
              `Tool "${name}" does ${action}, which is not a built-in action, and actions of TrustPolicy "${policy}" does not register it.`,
            ),
      explain: ({ does }) => passed(`${namesOf(does)} ${does.named.length === 1 ? 'is' : 'are'} registered`),
    },
    {
      id: 'deny.action',
      check: ({ name, does }) => {
        const denied = among(does, ALWAYS_DENIED);
        return denied === undefined
          ? undefined
          : deny(`Tool "${name}" does ${denied}, which no policy can allow to an agent; a user has to do it.`);
      },
      explain: ({ does }) => passed(`${namesOf(does)} is not one of ${[...ALWAYS_DENIED].join(', ')}`),
    },
    {
      id: 'rules.deny',
      check: ({ name, does }) => {
        const denied = among(does, prepared.deniedActions);
        return denied === undefined
          ? undefined
          : deny(`Tool "${name}" does ${denied}, which rules.deny of TrustPolicy "${policy}" forbids.`);
      },
      explain: ({ does }) => passed(`rules.deny does not name ${namesOf(does)}`),
    },
    {
      id: 'deny.tools',
      check: ({ name, subject }) =>
        prepared.policyDeny.covers(subject)
          ? deny(
              `Tool "${name}" is denied by tools.deny "${prepared.policyDeny.find(name)}" of TrustPolicy "${policy}".`,
            )
          : undefined,
      explain: () => passed(`tools.deny is ${prepared.policyDeny.describe()}`),
    },
    taintedRule(prepared, 'forge', isForgeTool),
    taintedRule(prepared, 'network', (request) => request.category === 'web' || declaredHosts(request).length > 0),
    taintedRule(prepared, 'message', ({ category }) => category === 'communication'),
    taintedRule(prepared, 'spawn', isChildTool),
    taintedToolsRule(prepared),
    taintedHostsRule(prepared),
  ];
}

/** The hosts that calls are sent to. Those of a forged tool are patterns, and each connection that its code opens is decided apart. */
function declaredHosts({ forged, hosts = [] }: ToolRuleInput): readonly string[] {
  return forged ? [] : hosts;
}

/** `tainted.network` of the policy, also for a call that a Connection of the namespace sends, which needs no grant for its host. */
function taintedHostsRule({ snapshot, taintedNetwork }: PreparedPolicy): Rule<ToolRuleInput> {
  return {
    id: 'tainted.hosts',
    check: (request) => {
      if (!snapshot.tainted || taintedNetwork === undefined) return undefined;
      const other = declaredHosts(request).find((host) => !taintedNetwork.covers(parseSubject('host', host)));
      return other === undefined
        ? undefined
        : deny(
            `Tool "${request.name}" sends to ${other}, which is not allowed while the session contains untrusted content: tainted.network of TrustPolicy "${snapshot.policy.name}" is ${taintedNetwork.describe()}; use a fresh session.`,
          );
    },
    explain: () => taintedListNote(snapshot.tainted, 'tainted.network', taintedNetwork),
  };
}

/** `tainted.tools` of the policy. Tool discovery only shows what the agent may list. */
function taintedToolsRule({ snapshot, taintedTools }: PreparedPolicy): Rule<ToolRuleInput> {
  return {
    id: 'tainted.tools',
    check: (request) =>
      !snapshot.tainted ||
      taintedTools === undefined ||
      taintedTools.covers(request.subject) ||
      isDiscoveryTool(request)
        ? undefined
        : deny(
            `Tool "${request.name}" is not allowed while the session contains untrusted content: tainted.tools of TrustPolicy "${snapshot.policy.name}" is ${taintedTools.describe()}; use a fresh session.`,
          ),
    explain: () => taintedListNote(snapshot.tainted, 'tainted.tools', taintedTools),
  };
}

/** A forged tool can do nothing that its author could not do, so the right to forge also grants its calls; a grant by name does too. */
function grantRule(prepared: PreparedPolicy, limits: ForgeLimits): Rule<ToolRuleInput> {
  const mayForge = prepared.snapshot.agent.spec.forge?.enabled === true;
  const agent = prepared.snapshot.agent.name;
  return {
    id: 'grant.tools',
    check: (request) => {
      if (isForgeTool(request)) return limits.allowed ? undefined : deny(forgeDenied(prepared), 'grant.forge');
      if ((mayForge && request.forged) || isDiscoveryTool(request)) return undefined;
      if (prepared.tools.covers(request.subject)) return undefined;
      return deny(
        `Tool "${request.name}" is not granted to agent "${agent}": grants.tools allows ${prepared.tools.describe()}.`,
      );
    },
    explain: (request) => {
      if (isDiscoveryTool(request)) return allowed('tool discovery needs no grant');
      return isForgeTool(request) || (mayForge && request.forged)
        ? allowed('granted by spec.forge.enabled')
        : allowed(`granted by grants.tools "${prepared.tools.find(request.name)}"`);
    },
  };
}

/** `toolProfile` narrows `grants.tools`. What the agent forged itself calls tools that pass this rule one by one. */
function profileRule({ profile, snapshot }: PreparedPolicy): Rule<ToolRuleInput> {
  const { name: agent, spec } = snapshot.agent;
  const mayForge = spec.forge?.enabled === true;
  const needsNone = (request: ToolRuleInput): boolean =>
    isForgeTool(request) || isDiscoveryTool(request) || (mayForge && request.forged);
  return {
    id: 'profile.tools',
    check: (request) => {
      if (profile === undefined || profile.covers(request.subject) || needsNone(request)) return undefined;
      return deny(
        `Tool "${request.name}" is not in toolProfile ${spec.toolProfile} of agent "${agent}", which allows ${profile.describe()}.`,
      );
    },
    explain: (request) => {
      if (profile === undefined) return notApplicable('the agent has no toolProfile');
      return needsNone(request)
        ? notApplicable('toolProfile selects granted tools only')
        : passed(`toolProfile ${spec.toolProfile} names it`);
    },
  };
}

function forgeDenied({ snapshot, level }: PreparedPolicy): string {
  return snapshot.agent.spec.forge?.enabled === true
    ? `Agent "${snapshot.agent.name}" may not forge: level ${level.name} permits ${level.forgeModes.join(' and ') || 'no mode'}, and spec.forge.modes names none of them.`
    : `Agent "${snapshot.agent.name}" may not forge: spec.forge.enabled is not set.`;
}

function nameRules(prepared: PreparedPolicy): Rule<ToolRuleInput>[] {
  const { level, deniedNames, policyAllow, snapshot } = prepared;
  const openCategories = [...level.categories].join(', ');
  return [
    {
      id: 'deny.name',
      check: ({ name, subject }) =>
        deniedNames.covers(subject)
          ? deny(`Tool "${name}" is denied by denyTools "${deniedNames.find(name)}" of agent "${snapshot.agent.name}".`)
          : undefined,
      explain: () => passed(`denyTools is ${deniedNames.describe()}`),
    },
    {
      id: 'level.category',
      check: (request) => {
        if (level.categories.has(request.category) || policyAllow.covers(request.subject)) return undefined;
        if (openingGrant(prepared, request) !== undefined) return undefined;
        if (isForgeTool(request) || isDiscoveryTool(request)) return undefined;
        return deny(
          `Tool "${request.name}" is of category ${request.category}; level ${level.name} opens ${openCategories || 'none'}, and tools.allow of TrustPolicy "${snapshot.policy.name}" does not name it${neededLevel(request.category)}.`,
        );
      },
      explain: (request) => {
        if (policyAllow.covers(request.subject))
          return allowed(`allowed by tools.allow "${policyAllow.find(request.name)}"`);
        if (isForgeTool(request)) return notApplicable('forging has its own rules for levels');
        if (isDiscoveryTool(request)) return notApplicable('tool discovery needs no level');
        const grant = level.categories.has(request.category) ? undefined : openingGrant(prepared, request);
        if (grant !== undefined) return allowed(`category ${request.category} is opened by ${grant} of the agent`);
        return allowed(`category ${request.category} is open at level ${level.name}`);
      },
    },
  ];
}

/**
 * The grant that opens the category of a tool below the level that does: the agent may use its memory or send messages to other
 * agents at any level once its manifest says which. Each key and each receiver is checked again when the tool is called.
 */
function openingGrant(prepared: PreparedPolicy, { category, does }: ToolRuleInput): string | undefined {
  const action = does.own;
  const { level, memoryRead, memoryWrite } = prepared;
  if (!level.grantable.has(category)) return undefined;
  if (category === 'memory') {
    const [patterns, field] =
      action === 'memory:read' ? [memoryRead, 'grants.memory.read'] : [memoryWrite, 'grants.memory.write'];
    return patterns.size > 0 ? field : undefined;
  }
  return action === 'comms:internal' || action === 'org:hire' ? communicationGrant(prepared, action) : undefined;
}

function communicationGrant(
  { messages, spawn, kill, publish, subscribe, snapshot }: PreparedPolicy,
  action: 'comms:internal' | 'org:hire',
): string | undefined {
  if (action === 'comms:internal' && messages.size > 0) return 'grants.messages';
  if (action === 'comms:internal' && publish.size + subscribe.size > 0) return 'grants.events';
  if (action === 'comms:internal' && (snapshot.agent.spec.grants?.schedules ?? 0) > 0) return 'grants.schedules';
  if (spawn.size > 0) return 'grants.spawn';
  if (snapshot.agent.spec.children?.inherit === true) return 'children.inherit';
  return action === 'comms:internal' && kill.size > 0 ? 'grants.kill' : undefined;
}

const GRANT_FIELDS: Partial<Record<ToolCategory, string>> = {
  memory: 'grants.memory',
  communication: 'grants.messages',
};

function neededLevel(category: ToolCategory): string {
  const found = Object.entries(LEVELS).find(([, table]) => table.categories.includes(category));
  if (found === undefined) return '';
  const field = GRANT_FIELDS[category];
  return `; ${category} opens at level ${found[0]}${field === undefined ? '' : ` or by ${field} of the agent`}`;
}

/** These rules only turn Allow into Escalate. */
function approvalRules(prepared: PreparedPolicy): Rule<ToolRuleInput>[] {
  const { autonomy, automatic, approvedActions, snapshot } = prepared;
  return [
    {
      id: 'rules.requireApproval',
      check: ({ name, does }) => {
        const waits = among(does, approvedActions);
        return waits === undefined
          ? undefined
          : escalate(
              `Tool "${name}" does ${waits}: rules.requireApproval of TrustPolicy "${snapshot.policy.name}" requires approval.`,
            );
      },
      explain: ({ does }) => passed(`rules.requireApproval does not name ${namesOf(does)}`),
    },
    {
      id: 'autonomy',
      check: (request) => {
        const { name, does } = request;
        if (automatic === undefined || isDiscoveryTool(request)) return undefined;
        const waits = does.named.find((action) => !automatic.has(action));
        if (waits === undefined) return undefined;
        return escalate(
          `Tool "${name}" does ${waits} (risk ${does.risk}), which needs an approver under autonomy ${autonomy}; without approval these run: ${describeAutomatic(automatic)}.`,
        );
      },
      explain: (request) =>
        isDiscoveryTool(request)
          ? notApplicable('tool discovery needs no approver')
          : passed(`autonomy ${autonomy} lets ${namesOf(request.does)} run without approval`),
    },
  ];
}

/** The first action of the tool, or base of one, that the set has. */
function among({ all }: ToolActions, actions: ReadonlySet<string>): string | undefined {
  if (actions.size === 0) return undefined;
  for (const action of all) if (actions.has(action)) return action;
  return undefined;
}

function namesOf({ named }: ToolActions): string {
  return named.map((action) => printable(action, 128)).join(', ');
}

function describeAutomatic(automatic: ReadonlySet<string>): string {
  return automatic.size === 0 ? 'nothing' : [...automatic].join(', ');
}
