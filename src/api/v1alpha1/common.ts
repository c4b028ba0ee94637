import { Type, type Static, type TSchema } from 'typebox';
import type { API_VERSION } from '../names.ts';
import {
  ACTION_TYPES,
  CUSTOM_ACTION_PATTERN,
  FORGE_MODES,
  MAX_ACTION_LENGTH,
  TOOL_APIS,
  TOOL_CATEGORIES,
} from './actions.ts';

/** An object schema that allows only the listed members. */
export const closed = { additionalProperties: false } as const;

/** A non-empty string with a maximum length. Every string in a spec has a maximum length. */
export function Text(maxLength: number, description: string) {
  return Type.String({ minLength: 1, maxLength, description });
}

/** A list that server-side apply replaces as a whole. */
export function atomicListOf<T extends TSchema>(items: T, maxItems: number, description: string) {
  return Type.Array(items, { maxItems, 'x-kubernetes-list-type': 'atomic', description });
}

/** A list without duplicate items. */
export function setOf<T extends TSchema>(items: T, maxItems: number, description: string) {
  return Type.Array(items, { maxItems, uniqueItems: true, 'x-kubernetes-list-type': 'set', description });
}

/** A Go duration of hours, minutes, seconds and milliseconds, as Kubernetes writes them: `90s`, `1h30m`, `250ms`. */
export const Duration = Type.String({
  'x-temper-form': 'a duration such as 250ms, 30s or 1h30m',
  pattern: '^([0-9]+(ms|s|m|h))+$',
  maxLength: 32,
  description: 'A duration in Kubernetes form: `250ms`, `30s`, `1h30m`, `720h`.',
});

/** A Kubernetes quantity of bytes: `128Mi`. The suffix `m` is not allowed: `128m` means 0.128 bytes. */
export const Bytes = Type.String({
  'x-temper-form': 'bytes such as 512Ki, 128Mi or 1Gi',
  pattern: '^[0-9]{1,12}(\\.[0-9]{1,3})?(k|Ki|M|Mi|G|Gi|T|Ti)?$',
  maxLength: 20,
  description: 'Bytes as a Kubernetes quantity: `512Ki`, `128Mi`, `1Gi`.',
});

/** A Kubernetes quantity of CPU: `500m`, `0.5`, `2`. */
export const Cpu = Type.String({
  'x-temper-form': 'CPU cores such as 500m or 2',
  pattern: '^[0-9]{1,6}(m|\\.[0-9]{1,3})?$',
  maxLength: 16,
  description: 'CPU cores as a Kubernetes quantity: `500m`, `2`.',
});

/** A decimal number as a string, so that a spec contains no floating-point number. */
export const Decimal = Type.String({
  'x-temper-form': 'a decimal number as a string, such as "2.00"',
  pattern: '^[0-9]{1,9}(\\.[0-9]{1,6})?$',
  maxLength: 16,
  description: 'A decimal number as a string: `"2.00"`.',
});

export const ObjectName = Type.String({
  'x-temper-form': 'a name of lower-case letters, digits, dashes and dots',
  pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
  minLength: 1,
  maxLength: 253,
  description: 'The name of an object in the same namespace.',
});

export const Pattern = Type.String({
  minLength: 1,
  maxLength: 256,
  description: 'A pattern. See docs/reference/patterns.md for the syntax.',
});

export function patternsOf(description: string) {
  return atomicListOf(Pattern, 100, description);
}

/** An integer between two bounds, both inclusive. */
export function count(minimum: number, maximum: number, description: string, standard?: number) {
  return Type.Integer({ minimum, maximum, description, ...(standard === undefined ? {} : { default: standard }) });
}

export const Autonomy = Type.Enum(['Full', 'Semi', 'Supervised', 'Locked'], {
  description:
    'How much the agent may do without an approver, least strict first. An Agent may be stricter than its TrustPolicy, never less strict.',
});

/** `provider/model`. */
export const ModelName = Type.String({
  'x-temper-form': 'provider/model, such as openai/gpt-4o-mini',
  pattern: '^[a-z0-9][a-z0-9-]*/[A-Za-z0-9][A-Za-z0-9._:/-]*$',
  maxLength: 128,
  description: 'A model as `provider/model`. `default/default` is the default model of the gateway configuration.',
});

/** Name of an access level: sandboxed, restricted, standard, elevated, or a custom level that the policy defines. */
export const LevelName = Type.String({
  'x-temper-form': 'a level name of lower-case letters, digits and dashes',
  pattern: '^[a-z][a-z0-9-]{0,62}$',
  maxLength: 63,
  description:
    'An access level: `sandboxed`, `restricted`, `standard`, `elevated`, or a custom level of the TrustPolicy.',
});

export const ToolApi = Type.Enum([...TOOL_APIS], {
  description: 'A host function that forged tools can use.',
});
export type ToolApi = Static<typeof ToolApi>;

export const ForgeMode = Type.Enum([...FORGE_MODES], {
  description: '`Compose`: a sequence of calls of other tools. `Sandbox`: JavaScript that runs in the sandbox.',
});
export type ForgeMode = Static<typeof ForgeMode>;

export const ToolName = Type.String({
  'x-temper-form': 'a tool name of lower-case letters, digits, _ and -, such as csv_rows',
  pattern: '^[a-z][a-z0-9_-]{0,62}$',
  maxLength: 63,
  description: 'The name by which models call the tool.',
});

export const Tier = Type.Enum(['Session', 'Agent', 'Shared'], {
  description: 'The scope of a forged tool: its session, its agent, or all agents of the namespace.',
});
export type Tier = Static<typeof Tier>;

/** Follows metadata.generation: the API server sets it to 1 at creation and increments it with each change of spec. */
export const ObservedGeneration = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'The metadata.generation that this status describes.',
});

export const Condition = Type.Object(
  {
    type: Type.String({ minLength: 1, maxLength: 64, description: 'The type of the condition.' }),
    status: Type.Enum(['True', 'False', 'Unknown'], { description: 'The status of the condition.' }),
    observedGeneration: Type.Optional(ObservedGeneration),
    lastTransitionTime: Type.String({
      format: 'date-time',
      maxLength: 64,
      description: 'The time when the status of the condition last changed, in RFC 3339 format.',
    }),
    reason: Type.String({ minLength: 1, maxLength: 128, description: 'A documented reason in CamelCase.' }),
    message: Type.String({
      maxLength: 4096,
      description: 'A message for human readers: what happened, to which object, and what to do.',
    }),
  },
  { ...closed, description: 'A condition in the standard Kubernetes form.' },
);
export type Condition = Static<typeof Condition>;

export const Conditions = Type.Array(Condition, {
  maxItems: 16,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  description: 'The conditions of the object, one entry per type.',
});

export const Uid = Type.String({
  'x-temper-form': 'a UID of letters, digits and dashes',
  pattern: '^[A-Za-z0-9-]{1,64}$',
  maxLength: 64,
  description: 'The UID that the API server assigned to the object.',
});

export const Digest = Type.String({
  'x-temper-form': 'sha256: and 64 lower-case hexadecimal digits',
  pattern: '^sha256:[0-9a-f]{64}$',
  maxLength: 71,
  description: 'A digest: `sha256:` and 64 hexadecimal digits.',
});

export const RequestNonce = Type.String({
  'x-temper-form': '16 to 64 letters, digits, _ and -',
  pattern: '^[A-Za-z0-9_-]{16,64}$',
  maxLength: 64,
  description: 'A random string, unique per request. An Approval with a different nonce has no effect.',
});

export const ActionName = Type.String({
  'x-temper-form': `one of ${ACTION_TYPES.join(', ')}, or a custom action type such as example.com/crm:refund`,
  pattern: `^(${ACTION_TYPES.join('|')}|${CUSTOM_ACTION_PATTERN})$`,
  maxLength: MAX_ACTION_LENGTH,
  description:
    'A built-in action type, `category:action`, or a custom one, `domain/category:action`, that TrustPolicies register in `actions`. Defaults to the action type of the tool category.',
});

/** What exactly an approval covers. Contains everything that must not change after the approval. */
export const ApprovalSubject = Type.Object(
  {
    promotion: Type.Optional(
      Type.Object(
        {
          tool: ToolName,
          digest: Digest,
          tier: Type.Enum(['Agent', 'Shared'], { description: 'The tier of the tool after the promotion.' }),
        },
        {
          ...closed,
          description: 'The promotion of the tool with this digest to this tier, in the namespace of the object.',
        },
      ),
    ),
    trust: Type.Optional(
      Type.Object(
        {
          agent: ObjectName,
          agentUid: Uid,
          level: LevelName,
          category: Type.Optional(
            Type.Enum([...TOOL_CATEGORIES], {
              description: 'The tool category that the level is for. Absent: all requests without a category.',
            }),
          ),
          agentSpecDigest: Digest,
          policy: ObjectName,
          policyGeneration: ObservedGeneration,
        },
        {
          ...closed,
          description:
            'One change of the access level of this agent, for exactly this agent spec and policy generation.',
        },
      ),
    ),
    call: Type.Optional(
      Type.Object(
        {
          agent: ObjectName,
          agentUid: Uid,
          tool: ToolName,
          argumentsDigest: Digest,
          callId: Text(128, 'The ID of the call.'),
        },
        { ...closed, description: 'One call of one tool with exactly these arguments.' },
      ),
    ),
  },
  { ...closed, description: 'What the decision applies to: exactly one of `promotion`, `trust` and `call`.' },
);
export type ApprovalSubject = Static<typeof ApprovalSubject>;

interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  generation?: number;
  resourceVersion?: string;
  creationTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string; controller?: boolean }[];
}

export interface Resource<K extends string, S, T = Record<string, unknown>> {
  apiVersion: typeof API_VERSION;
  kind: K;
  metadata: ObjectMeta;
  spec: S;
  status?: T;
}
