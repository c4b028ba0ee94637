import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { resolve } from 'node:path';
import { describe, it } from 'node:test';
import { parse, type Node } from 'acorn';
import { full } from 'acorn-walk';
import { NOT_IN_FORCE, entryOf } from '../../src/api/not-in-force.ts';
import { KIND_SCHEMAS, type KindName } from '../../src/api/v1alpha1/kinds.ts';
import {
  FIELD_READERS,
  FOR_HUMAN_READERS,
  MAKES_REQUESTS,
  READ_FOR_ANOTHER_RUNTIME,
  SHOWS_REQUESTS,
  WRITTEN_BY_TEMPER,
} from './source/field-readers.ts';
import { loadedModules } from './source/runtime-modules.ts';

const SRC = resolve(import.meta.dirname, '../../src');

interface Schema {
  properties?: Record<string, Schema>;
  items?: Schema;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
}

/** The fields without fields of their own, as dotted paths. */
function leavesOf(path: string, schema: Schema): string[] {
  const members = Object.entries(schema.properties ?? {});
  if (members.length > 0) return members.flatMap(([name, child]) => leavesOf(`${path}.${name}`, child));
  return schema.items?.properties === undefined ? [path] : leavesOf(`${path}[]`, schema.items);
}

/** The names of the members that a module reads: `value.name`, `value?.name` and `{ name } = value`. */
function membersRead(file: string): Set<string> {
  const program = parse(stripTypeScriptTypes(readFileSync(resolve(SRC, file), 'utf8')), {
    ecmaVersion: 'latest',
    sourceType: 'module',
  });
  const names = new Set<string>();
  full(program, (node: Node & { computed?: boolean; property?: Node; properties?: Node[]; key?: Node }) => {
    if (node.type === 'MemberExpression' && node.computed !== true) addName(node.property, names);
    if (node.type === 'ObjectPattern') {
      for (const property of node.properties ?? []) addName((property as { key?: Node }).key, names);
    }
  });
  return names;
}

function addName(node: Node | undefined, names: Set<string>): void {
  const { name } = (node ?? {}) as { name?: unknown };
  if (typeof name === 'string') names.add(name);
}

const READ = new Set(
  Object.entries(FIELD_READERS).flatMap(([kind, modules]) =>
    Object.values(modules).flatMap((fields) => fields.map((field) => `${kind}.${field}`)),
  ),
);
const LEAVES = new Map<KindName, string[]>(
  KIND_SCHEMAS.map(({ kind, spec }) => [kind, leavesOf('spec', spec as Schema)]),
);

/** What a runtime loads, and the places of the table in which it does not act on a field. */
const RUNTIMES = [
  { name: 'temper run', entries: ['cli/run/run.ts'], ignored: ['everywhere', 'run'] },
  { name: 'a cluster', entries: ['cli/serve-program.ts'], ignored: ['everywhere', 'cluster'] },
] as const;

/** Kinds that a user writes for both runtimes. Temper itself writes the others. */
const WRITTEN_BY_USERS: readonly KindName[] = ['Agent', 'TrustPolicy', 'Capability'];

for (const { name, entries, ignored } of RUNTIMES) {
  describe(`the spec fields in force with ${name}`, () => {
    const loaded = loadedModules(entries);
    const readersOf = (kind: KindName, field: string): string[] =>
      Object.entries(FIELD_READERS[kind] ?? {})
        .filter(([file, fields]) => loaded.has(file) && fields.includes(field))
        .map(([file]) => file);
    const isIgnored = (kind: KindName, field: string): boolean =>
      (ignored as readonly string[]).includes(entryOf(kind, field)?.where ?? '');
    const leaves = WRITTEN_BY_USERS.flatMap((kind) =>
      (LEAVES.get(kind) ?? []).map((field) => ({ kind, field, path: `${kind}.${field}` })),
    );

    it(`a module that ${name} loads reads each field, or the table of fields not in force says that ${name} does not`, () => {
      const unread = leaves.filter(
        ({ kind, field, path }) =>
          !isIgnored(kind, field) && !FOR_HUMAN_READERS.includes(path) && readersOf(kind, field).length === 0,
      );
      assert.deepEqual(
        unread.map(({ path }) => path),
        [],
      );
    });

    it(`no module that ${name} loads reads a field that the table says ${name} does not act on`, () => {
      const contradictory = leaves.filter(
        ({ kind, field, path }) =>
          isIgnored(kind, field) && !READ_FOR_ANOTHER_RUNTIME.includes(path) && readersOf(kind, field).length > 0,
      );
      assert.deepEqual(
        contradictory.map(({ path }) => path),
        [],
      );
    });
  });
}

describe('every spec field', () => {
  for (const [kind, fields] of LEAVES) {
    it(`every spec field of ${kind} is read by a module, is for human readers, or is in the table of fields not in force`, () => {
      const unaccounted = fields.filter(
        (field) =>
          entryOf(kind, field)?.where !== 'everywhere' &&
          !READ.has(`${kind}.${field}`) &&
          !FOR_HUMAN_READERS.includes(`${kind}.${field}`) &&
          !WRITTEN_BY_TEMPER.includes(kind),
      );
      assert.deepEqual(unaccounted, []);
    });
  }
});

describe('the table of field readers', () => {
  for (const [kind, modules] of Object.entries(FIELD_READERS)) {
    it(`the table of field readers names fields of ${kind} that exist, each with a module that reads a member of that name`, () => {
      for (const [file, fields] of Object.entries(modules)) {
        const read = membersRead(file);
        for (const field of fields) {
          assert.ok(LEAVES.get(kind as KindName)?.includes(field), `${kind} has no field ${field}`);
          assert.ok(read.has(field.split('.').at(-1) ?? ''), `${file} does not read ${kind} ${field}`);
        }
      }
    });
  }
});

describe('the times of requests for approvals', () => {
  it('every module that makes an ApprovalRequest is known, and gives it the times of spec.approvals', () => {
    const made = globSync('**/*.ts', { cwd: SRC }).filter((file) => {
      const text = readFileSync(resolve(SRC, file), 'utf8');
      return (
        /kind: 'ApprovalRequest',\s+metadata/.test(text) && /^ {4,}subject/m.test(text) && !/test(ing)?\.ts$/.test(file)
      );
    });
    const known = [...Object.keys(MAKES_REQUESTS), ...SHOWS_REQUESTS];
    assert.deepEqual(
      made.filter((file) => !known.includes(file)),
      [],
    );
    assert.ok(made.length >= SHOWS_REQUESTS.length + 4, made.join());
    for (const file of Object.keys(MAKES_REQUESTS))
      assert.match(readFileSync(resolve(SRC, file), 'utf8'), /\.\.\.(requestTimes\(|times\b)/, file);
  });
});

describe('the table of fields not in force', () => {
  it('the table of fields not in force names fields that exist, each once', () => {
    const names = NOT_IN_FORCE.map(({ kind, field }) => `${kind}.${field}`);
    assert.equal(new Set(names).size, names.length);
    for (const { kind, field } of NOT_IN_FORCE) {
      const exists = LEAVES.get(kind)?.some(
        (leaf) => leaf === field || leaf.startsWith(`${field}.`) || leaf.startsWith(`${field}[`),
      );
      assert.ok(exists, `${kind} has no field ${field}`);
    }
  });
});
