import { isJsonObject, type Json, jsonDepth, parseUntrustedJson } from '../../../lib/json.ts';
import type { Finding, ValidPart } from '../../findings.ts';
import type { AgentSpec } from '../../v1alpha1/agent.ts';

const MAX_DEPTH = 32;

/** The form of `spec.returns`. The agent checks the schema itself, as it checks the schemas of tools. */
export function returnsIsSchema({ returns }: ValidPart<AgentSpec>): Finding[] {
  const problem = returns === undefined ? undefined : problemOf(returns);
  if (problem === undefined) return [];
  const [message, fix] = problem;
  return [{ path: ['spec', 'returns'], rule: 'returns', message: `spec.returns ${message}`, fix }];
}

function problemOf(returns: string): [message: string, fix: string] | undefined {
  let schema: Json;
  try {
    schema = parseUntrustedJson(returns);
  } catch {
    return ['is not JSON', 'write a JSON Schema as JSON text'];
  }
  if (!isJsonObject(schema) || schema['type'] !== 'object') {
    return ['is not a JSON Schema with "type": "object"', 'put another value into a member of an object'];
  }
  if (jsonDepth(schema, MAX_DEPTH + 1) > MAX_DEPTH) return [`is nested deeper than ${MAX_DEPTH} levels`, 'flatten it'];
  return undefined;
}
