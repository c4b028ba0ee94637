import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { printable } from '../../lib/printable.ts';
import { grantsWithinPolicy } from '../grants.ts';
import { inheritedSpec } from './inherited-spec.ts';
import { inherits } from './inherits.ts';

/** A child that an agent asks for: a copy of a template, or one whose manifest the agent wrote. */
export type ChildRequest = { template: string } | { spec: AgentSpec };

/** What the decision about a child depends on, at one point in time. */
export interface ChildFacts {
  parent: { name: string; spec: AgentSpec };
  policy: TrustPolicySpec;
  /** The template of the request; undefined when the namespace has none of this name. */
  template: { name: string; spec: AgentSpec } | undefined;
  /** Living children of the parent, and all child agents under its policy. */
  children: number;
  total: number;
}

/** The spec of the admitted child, or why there is none. */
export type ChildAdmission = { spec: AgentSpec } | { refused: string };

const DEFAULT_PER_AGENT = 10;
const DEFAULT_TOTAL = 100;
const MAX_NAMED_REFUSALS = 5;
const MAX_REFUSAL_CHARACTERS = 500;
/** A child without messages does not keep a pod for longer. */
const DEFAULT_IDLE = { scaleToZeroAfter: '10m' };

/**
 * The one decision about a child, made by the gateway before it accepts a request and again by the operator before it creates the Agent.
 * The policy has decided before that the agent may start it.
 */
export function admitChild(request: ChildRequest, facts: ChildFacts): ChildAdmission {
  const crowded = limitProblem(facts);
  if (crowded !== undefined) return { refused: crowded };
  return 'template' in request ? ofTemplate(request.template, facts) : ofManifest(request.spec, facts);
}

function limitProblem({ parent, policy, children, total }: ChildFacts): string | undefined {
  const { perAgent = DEFAULT_PER_AGENT, total: maximum = DEFAULT_TOTAL } = policy.children ?? {};
  if (children >= perAgent) {
    return `agent "${parent.name}" has ${children} children, and children.perAgent of its TrustPolicy allows ${perAgent}; end one with agent_kill`;
  }
  if (total < maximum) return undefined;
  return `the TrustPolicy has ${total} child agents, and children.total allows ${maximum}; end one with agent_kill`;
}

/** Like the verb `bind` of RBAC: a user marked the template, so its permissions may exceed those of the parent. */
function ofTemplate(name: string, { template, parent }: ChildFacts): ChildAdmission {
  if (template?.spec.children?.template !== true) {
    return { refused: `"${name}" is not a template: a user has to set children.template in its spec` };
  }
  if (template.name === parent.name) return { refused: `agent "${parent.name}" cannot start copies of itself` };
  const { children: _marker, ...spec } = template.spec;
  const inherit = template.spec.children.inherit === true ? { children: { inherit: true } } : {};
  return { spec: { idle: DEFAULT_IDLE, ...spec, ...inherit } };
}

/** Within its parent, and then within the policy: what the parent leaves open, only the policy limits. */
function ofManifest(wanted: AgentSpec, { parent, policy }: ChildFacts): ChildAdmission {
  const exceedsParent = inherits(wanted, parent.spec);
  if (exceedsParent.length > 0) return refusedFor(exceedsParent.map(({ message }) => message));
  const spec = { idle: DEFAULT_IDLE, ...inheritedSpec(wanted, parent.spec) };
  const exceedsPolicy = grantsWithinPolicy(spec, policy);
  if (exceedsPolicy.length === 0) return { spec };
  return refusedFor(exceedsPolicy.map(({ message }) => printable(message, MAX_REFUSAL_CHARACTERS)));
}

function refusedFor(messages: readonly string[]): ChildAdmission {
  const more = messages.length - MAX_NAMED_REFUSALS;
  return {
    refused: `${messages.slice(0, MAX_NAMED_REFUSALS).join('; ')}${more > 0 ? `; and ${more} more` : ''}`,
  };
}
