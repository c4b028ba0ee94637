import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ACTION_TYPES, DEFAULT_ACTION, TOOL_CATEGORIES, expandActions, isActionType } from './actions.ts';
import type { AgentSpec } from './agent.ts';
import type { ToolApi } from './common.ts';
import { KIND_SCHEMAS } from './kinds.ts';
import { CONDITIONS } from './reasons.ts';
import type { TrustPolicySpec } from './trustpolicy.ts';

/** True only for two identical types; a widened enum would be `string`. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

describe('the kinds', () => {
  it('the kinds have enums with literal union types', () => {
    const autonomy: Same<NonNullable<AgentSpec['autonomy']>, 'Full' | 'Semi' | 'Supervised' | 'Locked'> = true;
    const api: Same<ToolApi, 'fetch' | 'fs.readFile' | 'crypto' | 'clock' | 'random'> = true;
    const base: Same<
      NonNullable<TrustPolicySpec['levels']>[number]['base'],
      'sandboxed' | 'restricted' | 'standard' | 'elevated'
    > = true;
    assert.ok(autonomy && api && base);
  });

  it('the kinds limit every string, list and number', () => {
    const unbounded: string[] = [];
    for (const { kind, spec, status } of KIND_SCHEMAS) {
      collectUnbounded(spec, `${kind}.spec`, unbounded);
      collectUnbounded(status, `${kind}.status`, unbounded);
    }
    assert.deepEqual(unbounded, []);
  });

  it('the kinds have a description for every field', () => {
    const undescribed: string[] = [];
    for (const { kind, spec, status } of KIND_SCHEMAS) {
      collectUndescribed(spec, `${kind}.spec`, undescribed);
      collectUndescribed(status, `${kind}.status`, undescribed);
    }
    assert.deepEqual(undescribed, []);
  });

  it('the kinds have CamelCase condition types and reasons, each with a meaning', () => {
    for (const [kind, conditions] of Object.entries(CONDITIONS)) {
      assert.equal(new Set(conditions.map(({ type }) => type)).size, conditions.length, kind);
      for (const { type, reasons } of conditions) {
        for (const [word, meaning] of [[type, 'x.'] as const, ...Object.entries(reasons)]) {
          assert.match(word, /^[A-Z][A-Za-z]+$/);
          assert.match(meaning, /\.$/, word);
        }
      }
    }
  });
});

describe('the action types', () => {
  it('the action types are 26 names, each with one category and one action', () => {
    assert.equal(ACTION_TYPES.length, 26);
    assert.equal(new Set(ACTION_TYPES).size, 26);
    for (const type of ACTION_TYPES) assert.match(type, /^[a-z]+:[a-z]+$/);
  });

  it('the action types expand a category to its actions and an unknown word to an empty list', () => {
    assert.deepEqual(expandActions('db'), ['db:query', 'db:mutate', 'db:admin']);
    assert.deepEqual(expandActions('db:query'), ['db:query']);
    for (const word of ['', 'dbx', 'db:', 'db:drop', 'constructor', '__proto__'])
      assert.deepEqual(expandActions(word), []);
  });

  it('the action types include the default action of each tool category', () => {
    for (const category of TOOL_CATEGORIES) assert.ok(isActionType(DEFAULT_ACTION[category]), category);
  });
});

interface Schema {
  type?: string;
  enum?: unknown[];
  description?: string;
  maxLength?: number;
  maxItems?: number;
  maximum?: number;
  properties?: Record<string, Schema>;
  items?: Schema;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
}

function childrenOf(schema: Schema, path: string): [Schema, string][] {
  const members = Object.entries(schema.properties ?? {}).map(([name, child]): [Schema, string] => [
    child,
    `${path}.${name}`,
  ]);
  return schema.items === undefined ? members : [...members, [schema.items, `${path}[]`]];
}

function collectUnbounded(schema: Schema, path: string, found: string[]): void {
  if (schema.type === 'string' && schema.enum === undefined && schema.maxLength === undefined) {
    if (!path.endsWith('lastTransitionTime')) found.push(path);
  }
  if (schema.type === 'array' && schema.maxItems === undefined) found.push(path);
  if (schema.type === 'integer' && schema.maximum === undefined) found.push(path);
  for (const [child, at] of childrenOf(schema, path)) collectUnbounded(child, at, found);
}

function collectUndescribed(schema: Schema, path: string, found: string[]): void {
  for (const [child, at] of childrenOf(schema, path)) {
    if (child.description === undefined && !at.endsWith('[]')) found.push(at);
    collectUndescribed(child, at, found);
  }
}
