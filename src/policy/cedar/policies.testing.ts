import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import {
  either,
  every,
  eventPatterns,
  hostPatterns,
  keyPatterns,
  like,
  namePatterns,
  oneOf,
} from './expressions.testing.ts';
import type { PolicyRequest } from '../types.ts';
import { quoted, segmentPatterns } from './expressions.testing.ts';
import { anyLimit, forbid, guardsPrivateData, isLastGeneration, isTaintedFor, permit } from './terms.testing.ts';
import { toolPolicies } from './tool-policies.testing.ts';

/**
 * A TrustPolicy and an Agent as Cedar policies, one set per kind of request. `context.unattended` asks for what runs without an approver:
 * a request that is allowed otherwise and not unattended is one that Temper escalates. Every grant is the `permit` of its action; every
 * other rule is a `forbid`.
 */
export function cedarPolicies(agent: AgentSpec, policy: TrustPolicySpec): Record<PolicyRequest['kind'], string> {
  const common = commonPolicies(agent, policy);
  const own = [
    ...toolPolicies(agent, policy),
    ...networkPolicies(agent, policy),
    ...dataPolicies(agent, policy),
    ...forgePolicies(agent, policy),
    ...agentPolicies(agent, policy),
    ...childPolicies(agent, policy),
  ].filter((text) => !text.includes('{ false }'));
  const setOf = (kind: PolicyRequest['kind']): [string, string] => [
    kind,
    [...common, ...own.filter((text) => text.includes(`Action::"${kind}"`))].join('\n'),
  ];
  return Object.fromEntries(KINDS.map(setOf)) as Record<PolicyRequest['kind'], string>;
}

const KINDS = [
  ...(['Tool', 'Network', 'File', 'Memory', 'Model', 'Forge', 'Promote', 'Message', 'Publish', 'Schedule'] as const),
  ...(['Spawn', 'Kill'] as const),
];

const READING = ['file_read', 'file_list', 'text_search', 'memory_get', 'memory_search', 'agent_list'];

function commonPolicies({ suspend, mode }: AgentSpec, policy: TrustPolicySpec): string[] {
  const all = (condition: string): string => `forbid (principal, action, resource) when { ${condition} };`;
  const free = 'action in [Action::"Model", Action::"Promote"]';
  const reads = every([
    'action in [Action::"File", Action::"Memory"]',
    'resource has access && resource.access == "read"',
  ]);
  const readingTool = every(['action == Action::"Tool"', `!resource.forged && ${oneOf('resource.name', READING)}`]);
  return [
    ...(suspend === true || policy.suspend === true ? [all('true')] : []),
    ...(mode === 'Observe' ? [all(`!(${free})`)] : []),
    ...(mode === 'Assist' ? [all(`!${either([free, reads, readingTool])}`)] : []),
  ];
}

function networkPolicies({ grants }: AgentSpec, policy: TrustPolicySpec): string[] {
  const named = [...(grants?.network ?? []), ...(policy.egress?.allow ?? [])].filter((one) => !/^\*\*?(:|$)/.test(one));
  const hosts = policy.tainted?.network;
  return [
    permit('Network', hostPatterns(grants?.network)),
    forbid('Network', `!${hostPatterns(policy.egress?.allow)}`),
    forbid('Network', isTaintedFor('network', policy)),
    forbid(
      'Network',
      anyLimit((limit) => `${limit}.network == "None"`),
    ),
    forbid('Network', `${anyLimit((limit) => `${limit}.network == "Allowlist"`)} && !${hostPatterns(named)}`),
    ...(hosts === undefined ? [] : [forbid('Network', `context.tainted && !${hostPatterns(hosts)}`)]),
    forbid('Network', `context.unattended && ${guardsPrivateData(policy)}`),
  ];
}

function dataPolicies({ grants, model }: AgentSpec, policy: TrustPolicySpec): string[] {
  const below = (root: string): string =>
    either([`resource.path == ${quoted(root)}`, like('resource.path', `${root}/*`)]);
  const isShared = either(['resource.key == "shared"', like('resource.key', 'shared.*')]);
  const named = [model.primary, ...(model.fallbacks ?? [])];
  return [
    permit('File', 'true'),
    forbid('File', `${anyLimit((limit) => `${limit}.files != "Full"`)} && !${either([below('/w/a'), below('/w')])}`),
    forbid('File', `${anyLimit((limit) => `${limit}.files == "Workspace"`)} && !${below('/w/a')}`),
    permit('Memory', `resource.access == "read" && ${keyPatterns('resource.key', grants?.memory?.read)}`),
    permit('Memory', `resource.access == "write" && ${keyPatterns('resource.key', grants?.memory?.write)}`),
    forbid('Memory', `resource.access == "write" && ${isTaintedFor('memory', policy)} && ${isShared}`),
    permit('Model', either([oneOf('resource.model', named), named.includes('default/default') ? 'true' : 'false'])),
    ...(policy.models?.allow === undefined
      ? []
      : [forbid('Model', `!${segmentPatterns('resource.model', policy.models.allow)}`)]),
  ];
}

function forgePolicies({ forge }: AgentSpec, policy: TrustPolicySpec): string[] {
  const apis = (list: readonly string[] | undefined): string =>
    `!${list === undefined || list.length === 0 ? 'resource.apis.isEmpty()' : `[${list.map(quoted).join(', ')}].containsAll(resource.apis)`}`;
  return [
    permit('Forge', forge?.enabled === true ? oneOf('resource.mode', forge.modes ?? ['Compose']) : 'false'),
    forbid('Forge', isTaintedFor('forge', policy)),
    forbid(
      'Forge',
      anyLimit((limit) => `!${limit}.forgeModes.contains(resource.mode)`),
    ),
    forbid('Forge', `!resource.apis.isEmpty() && ${anyLimit((limit) => `!${limit}.forgeApis`)}`),
    forbid('Forge', apis(forge?.apis)),
    forbid('Forge', apis(policy.forge?.apis)),
    forbid('Forge', `resource.apis.contains("fetch") && ${anyLimit((limit) => `${limit}.network == "None"`)}`),
    permit('Promote', 'true'),
    forbid('Promote', isTaintedFor('promote', policy)),
    forbid('Promote', 'context.unattended && resource.tier == "Shared"'),
    forbid('Promote', policy.promotion?.toAgent?.requireHuman === true ? 'context.unattended' : 'false'),
  ];
}

function agentPolicies({ grants }: AgentSpec, policy: TrustPolicySpec): string[] {
  const platform = either(['resource.subject == "temper"', like('resource.subject', 'temper.*')]);
  const { perAgent = 50, runsPerHour = 60 } = policy.schedules ?? {};
  return [
    permit('Message', either(['resource.child', namePatterns('resource.agent', grants?.messages)])),
    forbid('Message', isTaintedFor('message', policy)),
    permit('Publish', eventPatterns('resource.subject', grants?.events?.publish)),
    forbid('Publish', platform),
    forbid('Publish', isTaintedFor('message', policy)),
    permit('Schedule', `resource.others < ${grants?.schedules ?? 0}`),
    forbid('Schedule', `resource.others >= ${perAgent} || resource.runsPerHour > ${runsPerHour}`),
    forbid('Schedule', 'principal.generation > 0 || resource.depth > 0'),
    forbid('Schedule', isTaintedFor('schedule', policy)),
  ];
}

function childPolicies({ grants, children }: AgentSpec, policy: TrustPolicySpec): string[] {
  const hasTemplate = 'resource has template';
  const templates = policy.children?.templates;
  return [
    permit('Spawn', `${hasTemplate} && ${namePatterns('resource.template', grants?.spawn)}`),
    permit('Spawn', `!(${hasTemplate}) && ${children?.inherit === true}`),
    ...(templates === undefined
      ? []
      : [forbid('Spawn', `${hasTemplate} && !${namePatterns('resource.template', templates)}`)]),
    forbid('Spawn', `context.tainted && !(${hasTemplate})`),
    forbid('Spawn', isTaintedFor('message', policy)),
    permit('Kill', either(['resource.child', namePatterns('resource.agent', grants?.kill)])),
    ...['Spawn', 'Kill'].flatMap((action) => [
      forbid(action, isTaintedFor('spawn', policy)),
      forbid(action, isLastGeneration(policy)),
    ]),
  ];
}
