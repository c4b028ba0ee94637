import type { Json } from '../../lib/json.ts';
import { jsonDepth } from '../../lib/json.ts';
import { dottedPath } from '../findings.ts';
import type { Finding, FieldPath, ValidPart } from '../findings.ts';
import { parseDecimalMicros } from '../quantities.ts';
import type { CapabilitySpec } from '../v1alpha1/capability.ts';
import { checkMeasures, itemsOf } from './shared.ts';

type Spec = ValidPart<CapabilitySpec>;
type CapabilityCheck = (spec: Spec) => Finding[];

const MAX_SCHEMA_BYTES = 32 * 1024;
const MAX_SCHEMA_DEPTH = 32;
const MAX_RESOURCE_BYTES = 512 * 1024;

/** Cross-field rules of a Capability. */
export const CAPABILITY_CHECKS: readonly CapabilityCheck[] = [
  toolFitsType,
  textFitsType,
  oneBackend,
  oneMcpServer,
  resourcesAreSmall,
  schemasAreSmall,
  weightsAreInRange,
];

function toolFitsType(spec: Spec): Finding[] {
  if (spec.type === undefined) return [];
  const given = spec.tool !== undefined;
  if (given === (spec.type === 'Tool')) return [];
  const message = given ? `spec.tool is not allowed with type ${spec.type}` : 'type Tool requires spec.tool';
  const fix = given ? 'remove it, or set spec.type to Tool' : 'add spec.tool with its name and inputSchema';
  return [{ path: ['spec', 'tool'], rule: 'capability-tool', message, fix }];
}

function textFitsType(spec: Spec): Finding[] {
  if (spec.type === undefined || spec.type === 'Skill') return [];
  return (['content', 'resources', 'source'] as const)
    .filter((field) => spec[field] !== undefined)
    .map((field) => ({
      path: ['spec', field],
      rule: 'capability-text',
      message: `spec.${field} is not allowed with type ${spec.type}: no model gets its text`,
      fix: 'remove it, or set spec.type to Skill',
    }));
}

/** An object of the API server has at most 1.5 MiB. */
function resourcesAreSmall(spec: Spec): Finding[] {
  const texts = [...itemsOf(spec.resources, ['spec', 'resources'])].map(([resource]) => resource.text ?? '');
  const size = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (size <= MAX_RESOURCE_BYTES) return [];
  const message = `spec.resources has ${size} bytes of text`;
  const fix = `keep it within ${MAX_RESOURCE_BYTES} bytes`;
  return [{ path: ['spec', 'resources'], rule: 'skill-size', message, fix }];
}

function oneBackend({ backend }: Spec): Finding[] {
  if (backend === undefined) return [];
  const given = (['mcp', 'a2a', 'http'] as const).filter((name) => backend[name] !== undefined);
  if (given.length === 1) return [];
  const message = `spec.backend contains ${given.length === 0 ? 'none of mcp, a2a and http' : given.join(' and ')}`;
  return [{ path: ['spec', 'backend'], rule: 'exactly-one', message, fix: 'set exactly one of mcp, a2a and http' }];
}

function oneMcpServer({ backend }: Spec): Finding[] {
  const { mcp } = backend ?? {};
  if (mcp === undefined) return [];
  const path: FieldPath = ['spec', 'backend', 'mcp'];
  if ((mcp.url === undefined) === (mcp.server === undefined)) {
    const message = `spec.backend.mcp contains ${mcp.url === undefined ? 'neither url nor server' : 'url and server'}`;
    return [{ path, rule: 'exactly-one', message, fix: 'set exactly one of url and server' }];
  }
  if (mcp.server === undefined || mcp.connection === undefined) return [];
  const message = 'spec.backend.mcp.connection is not allowed with server: the platform runs it without a credential';
  return [{ path: [...path, 'connection'], rule: 'mcp-connection', message, fix: 'remove it, or name the url' }];
}

function schemasAreSmall(spec: Spec): Finding[] {
  return (['inputSchema', 'outputSchema'] as const).flatMap((field): Finding[] => {
    const schema = spec.tool?.[field];
    if (schema === undefined) return [];
    const path: FieldPath = ['spec', 'tool', field];
    if (jsonDepth(schema as Json, MAX_SCHEMA_DEPTH + 1) > MAX_SCHEMA_DEPTH) {
      const message = `${dottedPath(path)} is nested deeper than ${MAX_SCHEMA_DEPTH} levels`;
      return [{ path, rule: 'schema-size', message, fix: 'flatten it' }];
    }
    const size = Buffer.byteLength(JSON.stringify(schema));
    if (size <= MAX_SCHEMA_BYTES) return [];
    const message = `${dottedPath(path)} has ${size} bytes`;
    return [{ path, rule: 'schema-size', message, fix: `keep it within ${MAX_SCHEMA_BYTES} bytes` }];
  });
}

function weightsAreInRange(spec: Spec): Finding[] {
  return [...itemsOf(spec.edges, ['spec', 'edges'])].flatMap(([edge, path]) =>
    checkMeasures([
      {
        path: [...path, 'weight'],
        value: edge.weight,
        parse: parseDecimalMicros,
        minimum: 0,
        maximum: 1_000_000,
        allowed: 'a string from "0" to "1"',
      },
    ]),
  );
}
