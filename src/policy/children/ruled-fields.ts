import { isDeepStrictEqual } from 'node:util';
import { refusal, type Refusal } from './refusal.ts';

/** Fields that give a child nothing, or that the child has together with those of its parent, within the limits of the list. */
export const FREE_FIELDS: readonly string[] = [
  'description',
  'prompt.system',
  'prompt.context.memory',
  'invocation',
  'disclosure.mode',
  'disclosure.indexTokens',
  'disclosure.bodyTokens',
  'disclosure.unloadPercent',
  'returns',
  'idle.scaleToZeroAfter',
  'idle.closeSessionsAfter',
  'suspend',
  'model.temperature',
  'denyTools',
  'arguments',
  'constraints.code',
  'constraints.requireApproval',
  'hooks',
  'toolSettings',
  'sandbox.workspace.files[].path',
];

/** Fields that a rule of `inherits` compares with those of the parent. */
export const COMPARED_FIELDS: readonly string[] = [
  'trustPolicyRef.name',
  'prompt.context.files',
  'model.primary',
  'model.fallbacks',
  'model.routing',
  'model.maxOutputTokens',
  'model.agent',
  'grants.tools',
  'grants.network',
  'grants.memory.read',
  'grants.memory.write',
  'grants.messages',
  'grants.events.publish',
  'grants.events.subscribe',
  'grants.spawn',
  'grants.schedules',
  'grants.kill',
  'grants.shell',
  'grants.environment',
  'toolProfile',
  'mode',
  'autonomy',
  'constraints.files',
  'constraints.network',
  'constraints.git',
  'constraints.terminal',
  'children.inherit',
  'children.template',
  'forge.enabled',
  'forge.modes',
  'forge.apis',
  'forge.persistSource',
  'limits.turns',
  'limits.steps',
  'limits.outputCharacters',
  'limits.toolTimeout',
  'limits.concurrency',
  'quotas.tokensPerHour',
  'quotas.tokensPerDay',
  'quotas.costPerHour',
  'quotas.costPerDay',
  'quotas.costPerMonth',
  'quotas.toolCallsPerMinute',
  'quotas.networkBytesPerHour',
  'sandbox.class',
  'sandbox.resources.cpu',
  'sandbox.resources.memory',
  'sandbox.workspace.size',
  'sandbox.workspace.files[].configMap.name',
  'schedule',
  'priority',
  'a2a',
];

const RULED: ReadonlySet<string> = new Set([...FREE_FIELDS, ...COMPARED_FIELDS]);
const INNER: ReadonlySet<string> = new Set([...RULED].flatMap(outerPaths));

/** A field without a rule, at any depth, has to equal that of the parent, so that a new one is never inherited by oversight. */
export function unruledFields(child: object, parent: object): Refusal[] {
  return membersOf('', child, parent);
}

function membersOf(path: string, child: object, parent: unknown): Refusal[] {
  return Object.entries(child).flatMap(([key, value]): Refusal[] => {
    if (value === undefined) return [];
    return valueAt(path === '' ? key : `${path}.${key}`, value, memberOf(parent, key));
  });
}

function valueAt(path: string, value: unknown, has: unknown): Refusal[] {
  if (RULED.has(path) || isDeepStrictEqual(value, has)) return [];
  const isInner = INNER.has(path) && typeof value === 'object' && value !== null;
  if (!isInner) return [refusal(`spec.${path}`, 'of a child', 'another value')];
  if (!Array.isArray(value)) return membersOf(path, value, has);
  return value.flatMap((item: unknown) => valueAt(`${path}[]`, item, undefined));
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}

/** `a`, `a.b` and `a.b[]` of `a.b[].c`. */
function outerPaths(path: string): string[] {
  const ends = [...path.matchAll(/\.|\[\]/g)].map(({ index }) => path.slice(0, index));
  const items = [...path.matchAll(/\[\]/g)].map(({ index }) => path.slice(0, index + 2));
  return [...ends, ...items].filter((outer) => outer !== path);
}
