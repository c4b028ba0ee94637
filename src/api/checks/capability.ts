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

/** Cross-field rules of a Capability. */
export const CAPABILITY_CHECKS: readonly CapabilityCheck[] = [
  toolFitsType,
  oneBackend,
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

function oneBackend(spec: Spec): Finding[] {
  if (spec.backend === undefined) return [];
  const given = [spec.backend.mcp, spec.backend.http].filter((backend) => backend !== undefined).length;
  if (given === 1) return [];
  const message = `spec.backend contains ${given === 0 ? 'neither mcp nor http' : 'both mcp and http'}`;
  return [{ path: ['spec', 'backend'], rule: 'exactly-one', message, fix: 'set exactly one of mcp and http' }];
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
