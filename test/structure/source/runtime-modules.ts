import { existsSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, relative, resolve } from 'node:path';
import { type Node, parse } from 'acorn';
import { full } from 'acorn-walk';

const SRC = resolve(import.meta.dirname, '../../../src');

interface SourceNode extends Node {
  source?: unknown;
  callee?: unknown;
  arguments?: unknown;
}

/** The modules below `src` that the entry modules load, at once or on demand, as paths below `src`. Imports of types load nothing. */
export function loadedModules(entries: readonly string[]): Set<string> {
  const loaded = new Set<string>();
  const open = [...entries];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (loaded.has(file)) continue;
    loaded.add(file);
    open.push(...importsOf(file));
  }
  return loaded;
}

function importsOf(file: string): string[] {
  const code = stripTypeScriptTypes(readFileSync(resolve(SRC, file), 'utf8'));
  const targets: string[] = [];
  full(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), (node: SourceNode) => {
    const isOfTypes =
      node.type === 'ImportDeclaration' && /^import\s*\{[\s,]*\}/.test(code.slice(node.start, node.end));
    const target = isUrl(node) ? (node.arguments as unknown[])[0] : node.source;
    const { value } = (target ?? {}) as { value?: unknown };
    if (typeof value === 'string' && !isOfTypes) targets.push(value);
  });
  return targets
    .filter((target) => target.startsWith('.') && target.endsWith('.ts'))
    .map((target) => relative(SRC, resolve(SRC, dirname(file), target)))
    .filter((target) => !target.startsWith('..') && existsSync(resolve(SRC, target)));
}

/** `new URL('./worker.ts', import.meta.url)` */
function isUrl({ type, callee }: SourceNode): boolean {
  return type === 'NewExpression' && (callee as { name?: unknown }).name === 'URL';
}
