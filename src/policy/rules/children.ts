import type { PreparedPolicy } from '../prepare.ts';
import { taintedRule } from './common.ts';
import type { ToolRuleInput } from './rule-inputs.ts';
import { allowed, deny, notApplicable, passed } from './rule.ts';
import type { RequestOf, Rule } from './rule.ts';

const DEFAULT_GENERATIONS = 5;

/** The tools that start and end child agents. */
const CHILD_TOOLS: ReadonlySet<string> = new Set(['agent_spawn', 'agent_kill', 'spawn_specialist']);

export function spawnRules(prepared: PreparedPolicy): Rule<RequestOf<'Spawn'>>[] {
  const { snapshot, spawn, templates } = prepared;
  const { name, spec } = snapshot.agent;
  return [
    taintedRule<RequestOf<'Spawn'>>(prepared, 'message'),
    taintedRule<RequestOf<'Spawn'>>(prepared, 'spawn'),
    taintedManifest(prepared),
    { ...generation(prepared), check: () => ofLastGeneration(prepared) },
    {
      id: 'grant.spawn',
      check: ({ template }) => {
        if (template !== undefined) {
          if (spawn.has(template)) return undefined;
          return deny(
            `Agent "${name}" may not start copies of "${template}": grants.spawn allows ${spawn.describe()}.`,
          );
        }
        if (spec.children?.inherit === true) return undefined;
        return deny(
          `Agent "${name}" may not write the manifest of a child: children.inherit is not set; grants.spawn allows copies of ${spawn.describe()}.`,
        );
      },
      explain: ({ template }) =>
        allowed(
          template === undefined ? 'children.inherit is set' : `granted by grants.spawn "${spawn.find(template)}"`,
        ),
    },
    {
      id: 'policy.templates',
      check: ({ template }) =>
        template === undefined || templates === undefined || templates.has(template)
          ? undefined
          : deny(
              `TrustPolicy "${snapshot.policy.name}" does not allow template "${template}": children.templates is ${templates.describe()}.`,
            ),
      explain: ({ template }) =>
        template === undefined || templates === undefined
          ? notApplicable('children.templates is absent, or no template is used')
          : allowed(`allowed by children.templates "${templates.find(template)}"`),
    },
  ];
}

export function killRules(prepared: PreparedPolicy): Rule<RequestOf<'Kill'>>[] {
  const { snapshot, kill } = prepared;
  return [
    taintedRule<RequestOf<'Kill'>>(prepared, 'spawn'),
    { ...generation(prepared), check: () => ofLastGeneration(prepared) },
    {
      id: 'grant.kill',
      check: ({ agent, child }) =>
        child === true || kill.has(agent)
          ? undefined
          : deny(
              `Agent "${snapshot.agent.name}" may not end "${agent}", which it did not start: grants.kill allows ${kill.describe()}.`,
            ),
      explain: ({ agent, child }) =>
        allowed(child === true ? 'the agent started it' : `granted by grants.kill "${kill.find(agent)}"`),
    },
  ];
}

/**
 * The prompt of a manifest counts as the words of a user in every session of the child. So a session with untrusted content writes none,
 * whatever the policy says; a template was written by a user.
 */
function taintedManifest({ snapshot }: PreparedPolicy): Rule<RequestOf<'Spawn'>> {
  return {
    id: 'tainted.manifest',
    check: ({ template }) =>
      snapshot.tainted && template === undefined
        ? deny(
            'The session contains untrusted content, so it may not write the manifest of a child; name a template, or use a fresh session.',
          )
        : undefined,
    explain: ({ template }) =>
      template === undefined ? passed('the session is not tainted') : notApplicable('a template has a manifest'),
  };
}

/** Whether the tool starts or ends child agents. */
export function isChildTool({ name, forged }: ToolRuleInput): boolean {
  return CHILD_TOOLS.has(name) && !forged;
}

/** An agent of the last generation does not see the tools that start and end children. */
export function childToolRule(prepared: PreparedPolicy): Rule<ToolRuleInput> {
  return {
    ...generation(prepared),
    check: (request) => (isChildTool(request) ? ofLastGeneration(prepared) : undefined),
  };
}

function generation({ snapshot }: PreparedPolicy): Pick<Rule<unknown>, 'id' | 'explain'> {
  const maximum = snapshot.policy.spec.children?.generations ?? DEFAULT_GENERATIONS;
  return {
    id: 'children.generation',
    explain: () => passed(`the agent is of generation ${(snapshot.generation ?? 0) + 1} of ${maximum}`),
  };
}

function ofLastGeneration({ snapshot }: PreparedPolicy) {
  const { agent, policy, generation: own = 0 } = snapshot;
  const maximum = policy.spec.children?.generations ?? DEFAULT_GENERATIONS;
  if (own < maximum - 1) return undefined;
  return deny(
    `Agent "${agent.name}" is of generation ${own + 1}, and children.generations of TrustPolicy "${policy.name}" allows ${maximum}; let its parent start the agent.`,
  );
}
