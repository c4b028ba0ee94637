import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join, resolve } from 'node:path';
import { type Node, parse } from 'acorn';
import { full } from 'acorn-walk';

const SRC = resolve(import.meta.dirname, '../../../src');

/** The modules of a folder of `src`, or one module, as paths below `src`. Excludes tests and their helpers. */
export function modulesOf(path: string): string[] {
  if (path.endsWith('.ts')) return [path];
  const entries = readdirSync(join(SRC, path), { recursive: true }).map((name) => join(path, String(name)));
  return entries.filter((name) => name.endsWith('.ts') && !/\.(test|testing)\.ts$/.test(name));
}

/** The values of all strings in the code of a module. Excludes types, which do nothing at run time, and comments. */
export function stringsOf(module: string): Set<string> {
  const strings = new Set<string>();
  visit(module, (node) => {
    if (node.type === 'Literal' && typeof node.value === 'string') strings.add(node.value);
    if (node.type === 'TemplateElement') strings.add((node.value as { raw: string }).raw);
  });
  return strings;
}

/** The strings that a module assigns to a member `reason`, also as a branch of a conditional expression. */
export function reasonsIn(module: string): Set<string> {
  const reasons = new Set<string>();
  visit(module, (node) => {
    const key = node.key as { name?: unknown } | undefined;
    if (node.type === 'Property' && key?.name === 'reason') addBranches(node.value as SourceNode, reasons);
  });
  return reasons;
}

type SourceNode = Node & {
  value?: unknown;
  key?: unknown;
  consequent?: SourceNode;
  alternate?: SourceNode;
};

function addBranches(node: SourceNode | undefined, found: Set<string>): void {
  if (node?.type === 'Literal' && typeof node.value === 'string') found.add(node.value);
  if (node?.type !== 'ConditionalExpression') return;
  addBranches(node.consequent, found);
  addBranches(node.alternate, found);
}

function visit(module: string, callback: (node: SourceNode) => void): void {
  const code = stripTypeScriptTypes(readFileSync(join(SRC, module), 'utf8'));
  full(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), (node) => callback(node as SourceNode));
}
