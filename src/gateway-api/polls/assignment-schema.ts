import { type Static, Type } from 'typebox';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { closed } from '../../api/v1alpha1/common.ts';
import { BrokeredToolDefinition } from '../brokered/brokered-schemas.ts';
import { AgentRepository } from '../repositories/repository-schemas.ts';
import { MAX_POLL_SECONDS } from './waits.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';

/** The specs as their CRDs describe them; the API server has validated them. */
const specOf = <Spec>(kind: string) =>
  Type.Unsafe<Spec>({ type: 'object', description: `\`spec\` of the ${kind}; see its reference page.` });

export const AssignmentQuery = Type.Object(
  {
    wait: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_POLL_SECONDS, description: 'Seconds.' })),
    version: Type.Optional(Type.String({ maxLength: 128, description: 'The version the pod already has.' })),
  },
  closed,
);

export const Assignment = Type.Object(
  {
    version: Type.String({ description: 'Opaque; changes with any other member.' }),
    agent: Type.Object(
      { name: Type.String(), namespace: Type.String(), uid: Type.String(), spec: specOf<AgentSpec>('Agent') },
      closed,
    ),
    policy: Type.Object({ name: Type.String(), spec: specOf<TrustPolicySpec>('TrustPolicy') }, closed),
    level: Type.String(),
    categoryLevels: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: 'The levels of tool categories that have their own.',
      }),
    ),
    generation: Type.Optional(
      Type.Integer({ minimum: 0, description: '0 for an agent without a parent, 1 for its children.' }),
    ),
    models: Type.Record(Type.String(), Type.Object({ resolved: Type.String(), contextTokens: Type.Number() }, closed), {
      description: 'The real model of each model name in the manifests that the agent may use.',
    }),
    tools: Type.Optional(
      Type.String({
        description:
          'Opaque; changes with the tools of tiers Agent and Shared, and with revocations. Absent from an older gateway.',
      }),
    ),
    skills: Type.Optional(
      Type.Literal(true, { description: 'The namespace has skills, so that the agent has tools that load them.' }),
    ),
    hasEmbedder: Type.Optional(
      Type.Literal(true, { description: 'Searches compare meanings, so that a pod asks which tools fit a message.' }),
    ),
    brokered: Type.Optional(
      Type.Array(BrokeredToolDefinition, {
        description: 'The tools of the namespace that the gateway executes, and that the policy lists for the agent.',
      }),
    ),
    repositories: Type.Optional(
      Type.Array(AgentRepository, {
        maxItems: 100,
        description: 'The repositories that connections name for the namespace, which the gateway reads and pushes to.',
      }),
    ),
    suspended: Type.Boolean({ description: 'A suspended agent receives no messages, model calls or reviews.' }),
  },
  {
    ...closed,
    description:
      'The agent that the pod is bound to. A warm pod receives it when it is bound; a bound pod receives it after each change.',
  },
);
export type Assignment = Static<typeof Assignment>;
