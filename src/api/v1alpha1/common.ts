import { Type, type Static, type TSchema } from 'typebox';
import type { API_VERSION } from '../names.ts';
import { ACTION_TYPES } from './actions.ts';

/** Objects take the members they list and no others. */
export const closed = { additionalProperties: false } as const;

/** Text that is there, with a bound, as every text of a spec has. */
export function Text(maxLength: number, description: string) {
  return Type.String({ minLength: 1, maxLength, description });
}

/** A list that is replaced as a whole. */
export function atomicListOf<T extends TSchema>(items: T, maxItems: number, description: string) {
  return Type.Array(items, { maxItems, 'x-kubernetes-list-type': 'atomic', description });
}

/** A list in which nothing stands twice. */
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

/** A Kubernetes quantity of bytes: `128Mi`. The suffix `m` is left out: `128m` means an eighth of one byte. */
export const Bytes = Type.String({
  'x-temper-form': 'bytes such as 512Ki, 128Mi or 1Gi',
  pattern: '^[0-9]{1,12}(\\.[0-9]{1,3})?(k|Ki|M|Mi|G|Gi|T|Ti)?$',
  maxLength: 20,
  description: 'Bytes as a Kubernetes quantity: `512Ki`, `128Mi`, `1Gi`.',
});

/** A Kubernetes quantity of processors: `500m`, `0.5`, `2`. */
export const Cpu = Type.String({
  'x-temper-form': 'processors such as 500m or 2',
  pattern: '^[0-9]{1,6}(m|\\.[0-9]{1,3})?$',
  maxLength: 16,
  description: 'Processors as a Kubernetes quantity: `500m`, `2`.',
});

/** A decimal number as text, so that no float enters a spec. */
export const Decimal = Type.String({
  'x-temper-form': 'a decimal number as text, such as "2.00"',
  pattern: '^[0-9]{1,9}(\\.[0-9]{1,6})?$',
  maxLength: 16,
  description: 'A decimal number as text: `"2.00"`.',
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
  description: 'A pattern; see the pattern reference.',
});

export function patternsOf(description: string) {
  return atomicListOf(Pattern, 100, description);
}

/** A whole number between two bounds. */
export function count(minimum: number, maximum: number, description: string, standard?: number) {
  return Type.Integer({ minimum, maximum, description, ...(standard === undefined ? {} : { default: standard }) });
}

export const Autonomy = Type.Enum(['Full', 'Semi', 'Supervised', 'Locked'], {
  description: 'How much runs without a person, loosest first. An agent may only be tighter than its policy.',
});

/** `provider/model`. */
export const ModelName = Type.String({
  'x-temper-form': 'provider/model, such as openai/gpt-4o-mini',
  pattern: '^[a-z0-9][a-z0-9-]*/[A-Za-z0-9][A-Za-z0-9._:/-]*$',
  maxLength: 128,
  description: 'A model as `provider/model`; `default/default` is the configured default.',
});

/** Name of an access level: sandboxed, restricted, standard, elevated, or a custom one the policy defines. */
export const LevelName = Type.String({
  'x-temper-form': 'a level name of lower-case letters, digits and dashes',
  pattern: '^[a-z][a-z0-9-]{0,62}$',
  maxLength: 63,
  description: 'An access level: `sandboxed`, `restricted`, `standard`, `elevated`, or one the policy defines.',
});

export const ToolApi = Type.Enum(['fetch', 'fs.readFile', 'crypto', 'clock', 'random'], {
  description: 'A host function a forged tool may ask for.',
});
export type ToolApi = Static<typeof ToolApi>;

export const ForgeMode = Type.Enum(['Compose', 'Sandbox'], { description: 'How a forged tool is made.' });
export type ForgeMode = Static<typeof ForgeMode>;

export const ToolName = Type.String({
  'x-temper-form': 'a tool name of lower-case letters, digits, _ and -, such as csv_rows',
  pattern: '^[a-z][a-z0-9_-]{0,62}$',
  maxLength: 63,
  description: 'The name a model calls the tool by.',
});

export const Tier = Type.Enum(['Session', 'Agent', 'Shared'], { description: 'How far a tool reaches.' });
export type Tier = Static<typeof Tier>;

/** Written by the API server's rules: 1 at creation, one more at each change of spec. */
export const ObservedGeneration = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'The generation of spec this status speaks about.',
});

export const Condition = Type.Object(
  {
    type: Type.String({ minLength: 1, maxLength: 64, description: 'What the condition speaks about.' }),
    status: Type.Enum(['True', 'False', 'Unknown'], { description: 'Does it hold?' }),
    observedGeneration: Type.Optional(ObservedGeneration),
    lastTransitionTime: Type.String({
      format: 'date-time',
      maxLength: 64,
      description: 'When the status last changed, RFC 3339.',
    }),
    reason: Type.String({ minLength: 1, maxLength: 128, description: 'One of the documented reasons.' }),
    message: Type.String({ maxLength: 4096, description: 'What happened, to what, and what to do.' }),
  },
  { ...closed, description: 'One fact about the object, as Kubernetes writes them.' },
);
export type Condition = Static<typeof Condition>;

export const Conditions = Type.Array(Condition, {
  maxItems: 16,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  description: 'What is known about the object; one entry per type.',
});

export const Uid = Type.String({
  'x-temper-form': 'a uid of letters, digits and dashes',
  pattern: '^[A-Za-z0-9-]{1,64}$',
  maxLength: 64,
  description: 'The uid the API server gave the object.',
});

export const Digest = Type.String({
  'x-temper-form': 'sha256: and 64 lower-case hexadecimal digits',
  pattern: '^sha256:[0-9a-f]{64}$',
  maxLength: 71,
  description: '`sha256:` and 64 hexadecimal digits.',
});

export const RequestNonce = Type.String({
  'x-temper-form': '16 to 64 letters, digits, _ and -',
  pattern: '^[A-Za-z0-9_-]{16,64}$',
  maxLength: 64,
  description: 'A random text of one request. An answer with another nonce answers nothing.',
});

export const ActionName = Type.Enum([...ACTION_TYPES], {
  description: 'A registered action type, `category:action`. The default of the category when absent.',
});

/** What exactly is approved. Everything that could be exchanged under an approval is in here. */
export const ApprovalSubject = Type.Object(
  {
    promotion: Type.Optional(
      Type.Object(
        {
          tool: ToolName,
          digest: Digest,
          tier: Type.Enum(['Agent', 'Shared'], { description: 'The tier the tool would have.' }),
        },
        { ...closed, description: 'A tool of this digest at this tier, in the namespace of the object.' },
      ),
    ),
    trust: Type.Optional(
      Type.Object(
        {
          agent: ObjectName,
          agentUid: Uid,
          level: LevelName,
          agentSpecDigest: Digest,
          policy: ObjectName,
          policyGeneration: ObservedGeneration,
        },
        { ...closed, description: 'This level for this agent as it is written now, once.' },
      ),
    ),
    call: Type.Optional(
      Type.Object(
        {
          agent: ObjectName,
          agentUid: Uid,
          tool: ToolName,
          argumentsDigest: Digest,
          callId: Text(128, 'The id of the one call.'),
        },
        { ...closed, description: 'One call of one tool with these arguments, once.' },
      ),
    ),
  },
  { ...closed, description: 'What the answer binds to: exactly one of `promotion`, `trust` and `call`.' },
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
