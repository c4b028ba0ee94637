import type { Children } from '../../agent/tools/children/port.ts';
import { LABELS } from '../../api/cluster.ts';
import { API_VERSION } from '../../api/names.ts';
import type { Agent, AgentSpec } from '../../api/v1alpha1/agent.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { admitChild, type ChildRequest } from '../../policy/children/admission.ts';
import { childName } from '../../policy/children/child-name.ts';
import { listAgents } from '../../policy/children/known-agents.ts';
import { type ManifestCheck, wantedChild } from '../../policy/children/wanted-child.ts';
import type { Decider, PolicyRequest } from '../../policy/types.ts';
import { policyDenied } from '../../tools/authorize.ts';
import { type Member, memberKey } from '../team/member.ts';

/** The agents of a process, as one that starts and ends others needs them. */
export interface Family {
  readonly manifests: ManifestCheck;
  members(): readonly Member[];
  find(name: string): Member | undefined;
  isSuspended(key: string): boolean;
  /** Adds a child that was admitted, once it is stored. */
  add(agent: Agent, parent: Member): Promise<void>;
  /** Ends a child with all agents below it. */
  end(child: Member): Promise<void>;
  /** The agent with this name was a child that has ended. */
  hasEnded(name: string): boolean;
  /** Changes of the family run one after another, so that limits are exact. */
  change<T>(work: () => Promise<T>): Promise<T>;
}

/** The children of one agent. The admission is that of clusters. */
export function localChildren(parent: Member, decider: Decider, family: Family): Omit<Children, 'specialist'> {
  const assertAllowed = (request: PolicyRequest): void => {
    const decision = decider.decide(request);
    if (decision.effect !== 'Allow') throw policyDenied(decision);
  };
  return {
    spawn: (input, op) =>
      family.change(async () => {
        const wanted = wantedChild(input, parent.agent.spec, family.manifests);
        const name = childName(parent.name, wanted.name, `${memberKey(parent)}/${op.key}`);
        if (family.find(name) !== undefined) return { name };
        const { request } = wanted;
        assertAllowed({ kind: 'Spawn', ...('template' in request ? { template: request.template } : {}) });
        await family.add(childAgent(name, parent, admittedSpec(request, parent, family)), parent);
        return { name };
      }),
    kill: (name) =>
      family.change(async () => {
        const target = family.find(name);
        if (target === undefined && family.hasEnded(name)) return;
        const child = target?.parent === memberKey(parent);
        assertAllowed({ kind: 'Kill', agent: name, child });
        if (target?.parent === undefined) {
          throw new TemperError(
            'TEMPER_NOT_FOUND',
            `there is no child agent "${printable(name, 253)}"; only children can be ended`,
          );
        }
        await family.end(target);
      }),
    list: async () => ({ ...listAgents(othersOf(parent, family), decider) }) as unknown as JsonObject,
  };
}

/** The complete spec of a child that is admitted now. Throws TEMPER_CHILD_REFUSED. */
export function admittedSpec(
  request: ChildRequest,
  parent: Member,
  family: Pick<Family, 'members' | 'find'>,
): AgentSpec {
  const admission = admitChild(request, factsOf(request, parent, family));
  if ('refused' in admission) throw new TemperError('TEMPER_CHILD_REFUSED', admission.refused);
  assertWithinQuota(admission.spec.trustPolicyRef.name, [parent, ...family.members()]);
  return admission.spec;
}

/** On a cluster the operator creates an agent beyond the quota and gives it no pod; here it is not created. */
function assertWithinQuota(policyName: string, members: readonly Member[]): void {
  const under = members.filter(({ policy }) => policy.metadata.name === policyName);
  const count = new Set(under.map(memberKey)).size;
  const agents = under[0]?.policy.spec.quotas?.agents;
  if (agents === undefined || count < agents) return;
  throw new TemperError(
    'TEMPER_CHILD_REFUSED',
    `${count} agents exist, and spec.quotas.agents of TrustPolicy "${policyName}" allows ${agents}; end one with agent_kill`,
  );
}

function factsOf(request: ChildRequest, parent: Member, family: Pick<Family, 'members' | 'find'>) {
  const template = 'template' in request ? family.find(request.template) : undefined;
  const children = family.members().filter(({ parent: of }) => of !== undefined);
  return {
    parent: { name: parent.name, spec: parent.agent.spec },
    policy: parent.policy.spec,
    template: template === undefined ? undefined : { name: template.name, spec: template.agent.spec },
    children: children.filter(({ parent: of }) => of === memberKey(parent)).length,
    total: children.filter(({ policy }) => policy.metadata.name === parent.policy.metadata.name).length,
  };
}

export function childAgent(name: string, { namespace, name: parent }: Member, spec: AgentSpec): Agent {
  const labels = { [LABELS.parentAgent]: parent };
  return { apiVersion: API_VERSION, kind: 'Agent', metadata: { name, namespace, labels }, spec };
}

function othersOf(parent: Member, family: Family) {
  return family
    .members()
    .filter((member) => member !== parent)
    .map((member) => ({
      name: member.name,
      description: member.agent.spec.description,
      child: member.parent === memberKey(parent),
      template: member.agent.spec.children?.template === true,
      suspended: family.isSuspended(memberKey(member)),
    }));
}
