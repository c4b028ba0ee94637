import { suggestName } from '../lib/suggest.ts';
import { printable } from '../lib/printable.ts';
import { type Json, type JsonObject, isJsonObject, member } from '../lib/json.ts';
import { AGENT_CHECKS } from './checks/agent.ts';
import { APPROVAL_CHECKS, APPROVAL_REQUEST_CHECKS } from './checks/approvals.ts';
import { CAPABILITY_CHECKS } from './checks/capability.ts';
import { EMERGENT_TOOL_CHECKS, artifactIsSmall, digestMatches } from './checks/emergenttool.ts';
import { TRUST_POLICY_CHECKS } from './checks/trustpolicy.ts';
import type { Finding, FieldPath, PatternRules, ValidPart } from './findings.ts';
import { API_VERSION, GROUP } from './names.ts';
import { MAX_FINDINGS, type KindSchemaCheck, type SourceTextOf } from './schema-findings.ts';
import { KIND_SCHEMAS, type KindName } from './v1alpha1/kinds.ts';
import type { AnyResource } from './v1alpha1/resources.ts';

/** The result of the checks of one parsed document. */
export type CheckedObject =
  /** An object of another API group. It is not validated. */
  | { foreign: true; apiVersion: string; kind: string }
  /** `sound` is the object without the values that violate its schema; absent when those values are not known. */
  | { foreign: false; kind?: KindName; name?: string; validPart?: JsonObject; findings: Finding[] };

const KINDS: readonly string[] = KIND_SCHEMAS.map(({ kind }) => kind);

function isKind(text: unknown): text is KindName {
  return KINDS.includes(text as string);
}

/** Checks all rules that concern a single object. Never throws for any JSON value. */
export function checkObject(
  value: Json,
  check: KindSchemaCheck,
  patterns: PatternRules,
  source: SourceTextOf,
): CheckedObject {
  if (!isJsonObject(value)) {
    const message = 'the document is not an object: it must be a map with apiVersion, kind, metadata and spec';
    return { foreign: false, findings: [{ path: [], rule: 'type', message, fix: 'write one object per document' }] };
  }
  const { apiVersion, kind } = value;
  const foreign = foreignObject(apiVersion, kind);
  if (foreign !== undefined) return foreign;
  if (apiVersion === undefined && kind === undefined && !hasPartOfManifest(value))
    return { foreign: false, findings: [NO_MANIFEST] };
  const findings = [...versionFindings(apiVersion), ...kindFindings(kind)];
  if (!isKind(kind)) return { foreign: false, findings };
  const schema = check(kind, value, source);
  // Findings beyond the limit are not listed, so their values cannot be removed; the cross-field checks rely on the types of the rest.
  if (schema.length >= MAX_FINDINGS) return { foreign: false, kind, findings: [...findings, ...schema] };
  const sound = withoutInvalidValues(
    value,
    schema.map(({ path }) => path),
  );
  const own = specFindings(kind, member(sound, 'spec'), patterns);
  const name = member(member(sound, 'metadata'), 'name');
  const all = [...findings, ...schema, ...own, ...nameFindings(kind, name), ...artifactFindings(kind, value, schema)];
  return { foreign: false, kind, ...(typeof name === 'string' ? { name } : {}), validPart: sound, findings: all };
}

function hasPartOfManifest(value: JsonObject): boolean {
  return value['spec'] !== undefined || value['metadata'] !== undefined;
}

/** Data of another program beside manifests, such as the values of a Helm chart. */
const NO_MANIFEST: Finding = {
  path: ['apiVersion'],
  rule: 'manifest',
  message:
    'this is not a manifest: it has no apiVersion, kind, metadata or spec; is it the data of another program, such as Helm values?',
  fix: `name the manifests with -f instead of their folder, move this file to another folder, or begin a manifest with apiVersion: ${API_VERSION}`,
};

/** Only objects that clearly belong to another API group. A Temper kind in another group is an error, and so is a misspelt Temper group. */
function foreignObject(apiVersion: Json | undefined, kind: Json | undefined): CheckedObject | undefined {
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || isKind(kind)) return undefined;
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  if (group === GROUP || suggestName(group, [GROUP]) !== undefined) return undefined;
  return { foreign: true, apiVersion, kind };
}

function versionFindings(apiVersion: Json | undefined): Finding[] {
  if (apiVersion === API_VERSION) return [];
  const fix = `write apiVersion: ${API_VERSION}`;
  if (apiVersion === undefined)
    return [{ path: ['apiVersion'], rule: 'required', message: 'apiVersion is missing', fix }];
  const shown = typeof apiVersion === 'string' ? `"${printable(apiVersion, 60)}"` : 'this value';
  return [{ path: ['apiVersion'], rule: 'api-version', message: `apiVersion ${shown} is not supported`, fix }];
}

function kindFindings(kind: Json | undefined): Finding[] {
  if (isKind(kind)) return [];
  const fix = `one of ${KINDS.join(', ')}`;
  if (kind === undefined) return [{ path: ['kind'], rule: 'required', message: 'kind is missing', fix }];
  if (typeof kind !== 'string') return [{ path: ['kind'], rule: 'type', message: 'kind must be a string', fix }];
  const near = suggestName(kind, KINDS);
  const message = `the group ${GROUP} has no kind "${printable(kind, 60)}"`;
  return [{ path: ['kind'], rule: 'kind', message, fix: near === undefined ? fix : `did you mean ${near}?` }];
}

type ChecksOf<K extends KindName> = readonly ((
  spec: ValidPart<Extract<AnyResource, { kind: K }>['spec']>,
  patterns: PatternRules,
) => Finding[])[];

const SPEC_CHECKS: { readonly [K in KindName]: ChecksOf<K> } = {
  Agent: AGENT_CHECKS,
  TrustPolicy: TRUST_POLICY_CHECKS,
  EmergentTool: EMERGENT_TOOL_CHECKS,
  Capability: CAPABILITY_CHECKS,
  ApprovalRequest: APPROVAL_REQUEST_CHECKS,
  Approval: APPROVAL_CHECKS,
};

function specFindings(kind: KindName, spec: Json | undefined, patterns: PatternRules): Finding[] {
  if (!isJsonObject(spec)) return [];
  // Values that violate the schema were removed, so the rest of the spec has the types of its kind.
  const checks = SPEC_CHECKS[kind] as readonly ((spec: JsonObject, patterns: PatternRules) => Finding[])[];
  return checks.flatMap((check) => check(spec, patterns));
}

/** These names become part of pod names, labels and memory keys. */
function nameFindings(kind: KindName, name: Json | undefined): Finding[] {
  if (kind !== 'Agent' && kind !== 'TrustPolicy') return [];
  if (typeof name !== 'string' || (name.length <= 63 && !name.includes('.'))) return [];
  const message = `the name of ${kind === 'Agent' ? 'an Agent' : 'a TrustPolicy'} must have at most 63 characters and no dots`;
  return [
    { path: ['metadata', 'name'], rule: 'name', message, fix: 'choose a shorter name of letters, digits and dashes' },
  ];
}

function artifactFindings(kind: KindName, object: JsonObject, schema: readonly Finding[]): Finding[] {
  if (kind !== 'EmergentTool') return [];
  if (schema.some(({ path }) => path.length < 2 || path[1] === 'artifact' || path[1] === 'digest')) return [];
  const spec = member(object, 'spec');
  const artifact = member(spec, 'artifact');
  const digest = member(spec, 'digest');
  if (artifact === undefined || typeof digest !== 'string') return [];
  // The digest covers the source, which is not here.
  const isComplete = member(spec, 'withheldSource') === undefined;
  return [...artifactIsSmall(artifact), ...(isComplete ? digestMatches(artifact, digest) : [])];
}

/** A copy without the values at these paths. A removed list item leaves a gap, so that the other items keep their indexes. */
function withoutInvalidValues(object: JsonObject, paths: readonly FieldPath[]): JsonObject {
  if (paths.length === 0) return object;
  const copy = structuredClone(object);
  for (const path of paths) removeAt(copy, path);
  return copy;
}

function removeAt(object: JsonObject, path: FieldPath): void {
  let parent: Json | undefined = object;
  for (const segment of path.slice(0, -1)) {
    parent = Array.isArray(parent) ? parent[Number(segment)] : member(parent, String(segment));
  }
  const last = path.at(-1);
  if (Array.isArray(parent)) Reflect.set(parent, Number(last), undefined);
  else if (isJsonObject(parent) && last !== undefined) delete parent[last];
}
