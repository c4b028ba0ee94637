import { type Static, Type } from 'typebox';
import { TOOL_CATEGORIES } from '../../api/v1alpha1/actions.ts';
import { closed } from '../../api/v1alpha1/common.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { AnyJson } from '../../tools/event-schema/parts.ts';
import type { CapabilityTopics } from '../../tools/contract.ts';
import { AnyObject, DeliveryToken, DigestText } from '../schema-parts.ts';

const Definition = Type.Unsafe<Digest>({
  ...DigestText,
  description: 'Digest of the definition of the tool. A call with the digest of another definition is refused.',
});

const FailureCase = Type.Object({ code: Type.Unsafe<ErrorCode>({ type: 'string' }), when: Type.String() }, closed);

export const BrokeredToolDefinition = Type.Object(
  {
    definition: Definition,
    name: Type.String(),
    description: Type.String(),
    inputSchema: AnyObject,
    outputSchema: Type.Optional(AnyObject),
    examples: Type.Optional(Type.Array(AnyJson, { maxItems: 20, description: 'Inputs of a call.' })),
    usage: Type.Optional(
      Type.Array(Type.String(), { maxItems: 20, description: 'Texts about when a call helps, of the Capability.' }),
    ),
    failures: Type.Optional(Type.Array(FailureCase, { maxItems: 20, description: 'How a call fails.' })),
    topics: Type.Optional(Type.Unsafe<CapabilityTopics>({ type: 'object' })),
    category: Type.Enum([...TOOL_CATEGORIES]),
    action: Type.String(),
    sideEffects: Type.Boolean(),
    hosts: Type.Optional(
      Type.Array(Type.String(), { maxItems: 20, description: 'The hosts that its calls are sent to.' }),
    ),
    resultOrigin: Type.Optional(Type.Enum(['Mcp', 'Web'])),
  },
  { ...closed, description: 'A tool that the gateway executes.' },
);
export type BrokeredToolDefinition = Static<typeof BrokeredToolDefinition>;

export const BrokeredCallRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    tool: Type.String({ minLength: 1, maxLength: 63 }),
    definition: Definition,
    input: AnyObject,
    timeoutMs: Type.Integer({
      minimum: 1,
      maximum: 86_400_000,
      description: 'The time that the caller has left. A gateway executes a call for at most 10 minutes.',
    }),
  },
  { ...closed, description: 'A call of a tool that the gateway executes.' },
);
export type BrokeredCallRequest = Static<typeof BrokeredCallRequest>;

/** The failure of an executed call is no error of the request, which would be repeated. */
export const BrokeredCallResult = Type.Union(
  [
    Type.Object({ output: AnyJson }, closed),
    Type.Object(
      {
        error: Type.Object({ code: Type.Unsafe<ErrorCode>({ type: 'string' }), message: Type.String() }, closed),
      },
      closed,
    ),
  ],
  { description: 'The output of the tool, or why the executed call failed. Its text is untrusted.' },
);
export type BrokeredCallResult = Static<typeof BrokeredCallResult>;
