import { Type, type Static } from 'typebox';

export const GROUP = 'temper.dev';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;

/** A Go duration of hours, minutes, seconds and milliseconds, as Kubernetes writes them: `90s`, `1h30m`, `250ms`. */
export const Duration = Type.String({
  pattern: '^([0-9]+(ms|s|m|h))+$',
  maxLength: 32,
  description: 'A duration in Kubernetes form: `250ms`, `30s`, `1h30m`, `720h`.',
});

/** A Kubernetes quantity of bytes or cpu: `128Mi`, `500m`, `2`. */
export const Quantity = Type.String({
  pattern: '^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$',
  maxLength: 32,
  description: 'A quantity in Kubernetes form: `128Mi`, `500m`, `2`.',
});

/** A decimal number as text, so that no float enters a spec. */
export const Decimal = Type.String({
  pattern: '^[0-9]{1,12}(\\.[0-9]{1,6})?$',
  maxLength: 20,
  description: 'A decimal number as text: `"2.00"`.',
});

export const Percent = Type.Integer({ minimum: 0, maximum: 100, description: 'Whole percent.' });

export const ObjectName = Type.String({
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

export const Patterns = Type.Array(Pattern, { maxItems: 100, 'x-kubernetes-list-type': 'atomic' });

/** `provider/model`. */
export const ModelName = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]*/[A-Za-z0-9][A-Za-z0-9._:/-]*$',
  maxLength: 128,
  description: 'A model as `provider/model`; `default/default` is the configured default.',
});

/** Name of an access level: sandboxed, restricted, standard, elevated, or a custom one the policy defines. */
export const LevelName = Type.String({
  pattern: '^[a-z][a-z0-9-]{0,62}$',
  description: 'An access level: `sandboxed`, `restricted`, `standard`, `elevated`, or one the policy defines.',
});

export const ToolApi = Type.Enum(['fetch', 'fs.readFile', 'crypto', 'clock', 'random'], {
  description: 'A host function a forged tool may ask for.',
});
export type ToolApi = Static<typeof ToolApi>;

export const ForgeMode = Type.Enum(['Compose', 'Sandbox'], { description: 'How a forged tool is made.' });
export type ForgeMode = Static<typeof ForgeMode>;

export const ToolName = Type.String({
  pattern: '^[a-z][a-z0-9_-]{0,62}$',
  description: 'The name a model calls the tool by.',
});

export const Tier = Type.Enum(['Session', 'Agent', 'Shared'], { description: 'How far a tool reaches.' });
export type Tier = Static<typeof Tier>;

export const Condition = Type.Object(
  {
    type: Type.String({ maxLength: 64 }),
    status: Type.Enum(['True', 'False', 'Unknown']),
    observedGeneration: Type.Optional(Type.Integer({ minimum: 0 })),
    lastTransitionTime: Type.String({ format: 'date-time' }),
    reason: Type.String({ minLength: 1, maxLength: 128 }),
    message: Type.String({ maxLength: 4096 }),
  },
  { additionalProperties: false },
);
export type Condition = Static<typeof Condition>;

export const Conditions = Type.Array(Condition, {
  maxItems: 16,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
});

export interface ObjectMeta {
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
