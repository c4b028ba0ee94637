import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { TOOL_PROFILES } from '../../api/v1alpha1/agent/tool-profiles.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import {
  either,
  every,
  like,
  namePatterns,
  oneOf,
  quoted,
  segmentPatterns,
  toolPatterns,
} from './expressions.testing.ts';
import { anyLimit, forbid, guardsPrivateData, isLastGeneration, isTaintedFor, permit } from './terms.testing.ts';

const OWN = '!resource.forged';
const IS_FORGE_TOOL = `${OWN} && ${oneOf('resource.id', ['forge_tool', 'drop_tool'])}`;
const IS_DISCOVERY = `${OWN} && ${oneOf('resource.id', ['discover_capabilities', 'list_tools', 'load_tool', 'load_tool_resource'])}`;
const IS_CHILD_TOOL = `${OWN} && ${oneOf('resource.id', ['agent_spawn', 'agent_kill', 'spawn_specialist'])}`;

export function toolPolicies(agent: AgentSpec, policy: TrustPolicySpec): string[] {
  return [
    ...grantPolicies(agent, policy),
    ...denials(agent, policy),
    ...levelPolicies(agent, policy),
    ...argumentPolicies(agent),
    ...approvalPolicies(agent, policy),
  ];
}

function grantPolicies({ grants, forge, mode }: AgentSpec, policy: TrustPolicySpec): string[] {
  const mayForge = forge?.enabled === true ? 'true' : 'false';
  const modes = (forge?.modes ?? ['Compose']).map(
    (one) => `!${anyLimit((limit) => `!${limit}.forgeModes.contains("${one}")`)}`,
  );
  const hasForgeTool = every([
    mayForge,
    mode === undefined || mode === 'Full' ? 'true' : 'false',
    `!(${isTaintedFor('forge', policy)})`,
    either(modes),
  ]);
  return [
    permit('Tool', `${IS_FORGE_TOOL} && ${hasForgeTool}`),
    permit('Tool', IS_DISCOVERY),
    permit('Tool', `resource.forged && ${mayForge}`),
    permit('Tool', `!(${IS_FORGE_TOOL}) && ${toolPatterns('resource.name', grants?.tools)}`),
  ];
}

function denials({ denyTools, toolProfile, forge }: AgentSpec, policy: TrustPolicySpec): string[] {
  const forgedByAgent = forge?.enabled === true ? 'resource.forged' : 'false';
  const { rules, tools, tainted } = policy;
  return [
    forbid('Tool', `!${either(['resource.builtIn', oneOf('resource.action', customNames(policy))])}`),
    forbid('Tool', doesAny(['deploy:production', 'db:admin', 'org:fire'], policy)),
    forbid('Tool', doesAny(rules?.deny, policy)),
    forbid('Tool', toolPatterns('resource.name', tools?.deny)),
    forbid('Tool', toolPatterns('resource.name', denyTools)),
    forbid('Tool', `${isTaintedFor('forge', policy)} && ${IS_FORGE_TOOL}`),
    forbid('Tool', `${isTaintedFor('network', policy)} && resource.category == "web"`),
    forbid('Tool', `${isTaintedFor('message', policy)} && resource.category == "communication"`),
    forbid('Tool', `${isTaintedFor('spawn', policy)} && ${IS_CHILD_TOOL}`),
    forbid('Tool', `${IS_CHILD_TOOL} && ${isLastGeneration(policy)}`),
    ...(tainted?.tools === undefined
      ? []
      : [
          forbid('Tool', `context.tainted && !${either([IS_DISCOVERY, toolPatterns('resource.name', tainted.tools)])}`),
        ]),
    ...(toolProfile === undefined
      ? []
      : [
          forbid(
            'Tool',
            `!${either([IS_FORGE_TOOL, IS_DISCOVERY, forgedByAgent, toolPatterns('resource.name', TOOL_PROFILES[toolProfile])])}`,
          ),
        ]),
  ];
}

/** An entry of a rule is an action or a category of actions. */
function isAction(entries: readonly string[] = []): string {
  return either([oneOf('resource.action', entries), oneOf('resource.actionCategory', entries)]);
}

function customNames({ actions = [] }: TrustPolicySpec): string[] {
  return actions.map(({ name }) => name);
}

function isNamed(entries: readonly string[], action: string): boolean {
  return entries.includes(action) || entries.includes(action.slice(0, action.indexOf(':')));
}

/** Whether the tool performs the custom action: its own, or one that the policy gives it. */
function performs({ name, tools }: NonNullable<TrustPolicySpec['actions']>[number]): string {
  return either([oneOf('resource.action', [name]), toolPatterns('resource.name', tools)]);
}

/** Whether an entry names an action of the tool, or the base of a custom one. */
function doesAny(entries: readonly string[] = [], { actions = [] }: TrustPolicySpec): string {
  const custom = actions.filter(
    ({ name, base = 'comms:external' }) => isNamed(entries, name) || isNamed(entries, base),
  );
  return either([isAction(entries), ...custom.map(performs)]);
}

/** The same for what levels name. */
function doesAnyOf(limit: string, { actions = [] }: TrustPolicySpec): string {
  const named = (action: string): string =>
    either([
      `${limit}.contains(${quoted(action)})`,
      `${limit}.contains(${quoted(action.slice(0, action.indexOf(':')))})`,
    ]);
  return either([
    `${limit}.contains(resource.action)`,
    `${limit}.contains(resource.actionCategory)`,
    ...actions.map((action) =>
      every([performs(action), either([named(action.name), named(action.base ?? 'comms:external')])]),
    ),
  ]);
}

function sends(policy: TrustPolicySpec): string {
  return either(['resource.category == "web"', doesAny(['comms:external'], policy)]);
}

/** The grants that open a category below the level that does. */
function openedByGrants({ grants = {}, children }: AgentSpec, policy: TrustPolicySpec): string {
  const { memory, events, schedules = 0 } = grants;
  const has = (list: readonly unknown[] = []): boolean => list.length > 0;
  const starts = has(grants.spawn) || children?.inherit === true;
  const lists = [grants.messages, events?.publish, events?.subscribe, grants.kill];
  const messages = starts || schedules > 0 || lists.some((list) => has(list));
  return every([
    `!${anyLimit((limit) => `!${limit}.grantable.contains(resource.category)`)}`,
    either([
      `resource.category == "memory" && ${isOwn('memory:read', policy)} && ${has(memory?.read)}`,
      `resource.category == "memory" && !${isOwn('memory:read', policy)} && ${has(memory?.write)}`,
      `resource.category != "memory" && ${isOwn('comms:internal', policy)} && ${messages}`,
      `resource.category != "memory" && ${isOwn('org:hire', policy)} && ${starts}`,
    ]),
  ]);
}

function levelPolicies(agent: AgentSpec, policy: TrustPolicySpec): string[] {
  const opened = openedByGrants(agent, policy);
  const exempt = either([IS_FORGE_TOOL, IS_DISCOVERY, opened, toolPatterns('resource.name', policy.tools?.allow)]);
  const isGit = either(['resource.category == "version_control"', doesAny(['vcs'], policy)]);
  const namesRemote = either([
    like('context.remote', '*://*'),
    `${like('context.remote', '*@*:*')} && !(${like('context.remote', '@*')})`,
    like('context.remote', '*.*:*'),
    like('context.remote', '*::*'),
    like('context.remote', '//*'),
  ]);
  return [
    forbid('Tool', `${anyLimit((limit) => `!${limit}.categories.contains(resource.category)`)} && !${exempt}`),
    forbid('Tool', `${sends(policy)} && ${anyLimit((limit) => `${limit}.network == "None"`)}`),
    forbid('Tool', `resource.category == "terminal" && ${anyLimit((limit) => `${limit}.terminal == "None"`)}`),
    forbid('Tool', `${isGit} && ${doesAny(['vcs:push'], policy)} && ${anyLimit((limit) => `${limit}.git != "Full"`)}`),
    forbid(
      'Tool',
      `${isGit} && context has remote && ${namesRemote} && ${anyLimit((limit) => `${limit}.git == "LocalOnly"`)}`,
    ),
  ];
}

/** The own action of the tool, or its base. */
function isOwn(action: string, { actions = [] }: TrustPolicySpec): string {
  const based = actions.filter(({ base = 'comms:external' }) => base === action).map(({ name }) => name);
  return oneOf('resource.action', [action, ...based]);
}

const SHELL = '*?|&;<>()$`"\'\n\r{}[]!#~\\';

function argumentPolicies({ grants, arguments: pins = [] }: AgentSpec): string[] {
  const shell = grants?.shell ?? [];
  const meta = either(SHELL.split('').map((one) => containing('context.command', one)));
  const anything = shell.some((one) => /^\*+$/.test(one))
    ? `!${anyLimit((limit) => `${limit}.terminal != "Full"`)}`
    : 'false';
  const isCommand = 'resource.category == "terminal" && context.call';
  return [
    forbid('Tool', `resource.category == "terminal" && ${shell.length === 0}`),
    forbid('Tool', `${isCommand} && !(context has command)`),
    forbid('Tool', `${isCommand} && context has command && ${meta} && !(${anything})`),
    forbid('Tool', `${isCommand} && context has command && !${namePatterns('context.command', shell)}`),
    ...pins.map(({ tool, argument, allow }) =>
      forbid(
        'Tool',
        `context.call && ${toolPatterns('resource.name', [tool])} && !(context has ${argument} && ${segmentPatterns(`context.${argument}`, allow)})`,
      ),
    ),
  ];
}

/** A text that contains the character itself, a star included. */
function containing(variable: string, character: string): string {
  const escaped = character === '*' ? '\\*' : JSON.stringify(character).slice(1, -1).replaceAll("'", "\\'");
  return `${variable} like "*${escaped}*"`;
}

const SEMI = ['code', 'test', 'docs', 'vcs', 'comms:internal', 'db:query', 'memory:read'];
const SUPERVISED = ['code:read', 'vcs:read', 'test:run', 'db:query', 'memory:read'];
/** The risks low and medium. */
const LOWER_RISKS = [
  'code:read',
  'test:write',
  'test:run',
  'docs:write',
  'vcs:read',
  'vcs:branch',
  'comms:internal',
  'db:query',
  'memory:read',
  'code:create',
  'code:write',
  'code:refactor',
  'vcs:commit',
  'arch:decide',
  'org:hire',
  'org:promote',
  'budget:spend',
];

function approvalPolicies({ autonomy }: AgentSpec, policy: TrustPolicySpec): string[] {
  const presets = [policy.autonomy ?? 'Semi', autonomy ?? 'Full'];
  const allowed = presets.includes('Locked') ? [] : (policy.rules?.allow ?? []);
  const isExempt = (action: { name: string; base?: string; risk?: string }): boolean =>
    isNamed(allowed, action.name) &&
    ['low', 'medium'].includes(action.risk ?? 'high') &&
    LOWER_RISKS.includes(action.base ?? 'comms:external');
  const exemptNames = (policy.actions ?? []).filter(isExempt).map(({ name }) => name);
  const exempted = either([
    every([isAction(allowed), oneOf('resource.action', LOWER_RISKS)]),
    oneOf('resource.action', exemptNames),
  ]);
  // Each custom action that the policy gives the tool waits for itself.
  const given = either(
    (policy.actions ?? [])
      .filter(({ name }) => !exemptNames.includes(name))
      .map(({ tools }) => toolPatterns('resource.name', tools)),
  );
  const waits = (free: readonly string[]): string =>
    `!(${IS_DISCOVERY}) && ${either([given, `!${either([exempted, isAction(free)])}`])}`;
  const recursive = 'context.call && context has recursive && context.recursive';
  const isDeletion = `${OWN} && !(${IS_FORGE_TOOL}) && resource.id != "code_run" && resource.category == "file_system" && ${doesAny(['code:delete'], policy)}`;
  return [
    anyLimit((limit) => doesAnyOf(`${limit}.approvals`, policy)),
    doesAny(policy.rules?.requireApproval, policy),
    `context.call && ${sends(policy)} && ${guardsPrivateData(policy)}`,
    `${recursive} && ${isDeletion}`,
    `${anyLimit((limit) => `${limit}.rank == 0`)} && ${waits(SEMI)}`,
    presets.includes('Semi') ? waits(SEMI) : 'false',
    presets.includes('Supervised') ? waits(SUPERVISED) : 'false',
    presets.includes('Locked') ? waits([]) : 'false',
  ].map((condition) => forbid('Tool', `context.unattended && ${condition}`));
}
