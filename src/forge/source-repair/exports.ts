import type { AnyNode, AssignmentExpression, Expression, ExpressionStatement, Program } from 'acorn';
import { analyseScopes } from '../static/scope.ts';
import { applyEdits, removal, type TextEdit } from './edits.ts';

/** A script whose exports became plain declarations. */
export interface PlainScript {
  source: string;
  /** The local names that were exported, the default export first. */
  exported: string[];
  repairs: string[];
}

type NodeOf<T extends AnyNode['type']> = Extract<AnyNode, { type: T }>;

/** Turns `export …`, `module.exports = …`, `exports.x = …` and a bare function into declarations of a script. */
export function removeExports(source: string, program: Program): PlainScript {
  const remover = new ExportRemover(source, analyseScopes(program).topLevel);
  for (const node of program.body) remover.statement(node);
  remover.bareFunction(program.body);
  return {
    source: applyEdits(source, remover.edits),
    exported: [...remover.defaults, ...remover.names],
    repairs: [...remover.repairs],
  };
}

/** The names of exported values that are no functions, or may be none. */
const NAMES: Readonly<Partial<Record<AnyNode['type'], string>>> = {
  ObjectExpression: 'exported',
  NewExpression: 'exported',
  CallExpression: 'exported',
  ClassDeclaration: 'ExportedTool',
  ClassExpression: 'ExportedTool',
};

class ExportRemover {
  readonly edits: TextEdit[] = [];
  readonly defaults: string[] = [];
  readonly names: string[] = [];
  readonly repairs = new Set<string>();
  readonly #source: string;
  readonly #taken: ReadonlySet<string>;

  constructor(source: string, taken: ReadonlySet<string>) {
    this.#source = source;
    this.#taken = taken;
  }

  statement(node: AnyNode): void {
    if (node.type === 'ExportNamedDeclaration') this.#named(node);
    else if (node.type === 'ExportDefaultDeclaration') this.#default(node);
    else if (node.type === 'ExpressionStatement') this.#commonJs(node);
  }

  /** `(input) => …` alone, or after its helpers. */
  bareFunction(body: readonly AnyNode[]): void {
    const functions = body.filter(isFunctionStatement);
    const [only] = functions;
    if (only === undefined || functions.length > 1 || this.#taken.has('execute') || this.#taken.has('run')) return;
    this.edits.push({ start: only.start, end: only.start, text: 'const execute = ' });
    this.repairs.add('the function without a name was named execute');
  }

  #named(node: NodeOf<'ExportNamedDeclaration'>): void {
    if (node.source) return;
    this.repairs.add('export was removed');
    if (node.declaration) {
      this.edits.push({ start: node.start, end: node.declaration.start, text: '' });
      this.names.push(...declaredNames(node.declaration));
      return;
    }
    this.edits.push(removal(this.#source, node.start, node.end));
    for (const { local, exported } of node.specifiers) {
      if (local.type !== 'Identifier') continue;
      const isDefault = exported.type === 'Identifier' && exported.name === 'default';
      (isDefault ? this.defaults : this.names).push(local.name);
    }
  }

  #default(node: NodeOf<'ExportDefaultDeclaration'>): void {
    const { declaration } = node;
    const start = node.start + (/^export\s+default\s*/.exec(this.#source.slice(node.start))?.[0].length ?? 0);
    this.repairs.add('export default was removed');
    if (declaration.type === 'Identifier') {
      this.edits.push(removal(this.#source, node.start, node.end));
      this.defaults.push(declaration.name);
    } else if ('id' in declaration && declaration.id && !isExpression(declaration)) {
      this.edits.push({ start: node.start, end: start, text: '' });
      this.defaults.push(declaration.id.name);
    } else this.#bind(node.start, start, declaration.type);
  }

  /** Declares a value that was exported without a name. Only a function may be `execute` itself. */
  #bind(start: number, end: number, type: AnyNode['type'], wanted?: string): void {
    const name = wanted ?? NAMES[type] ?? 'execute';
    if (this.#taken.has(name) || this.defaults.includes(name) || this.names.includes(name)) return;
    this.edits.push({ start, end, text: `const ${name} = ` });
    (wanted === undefined ? this.defaults : this.names).push(name);
  }

  #commonJs(statement: ExpressionStatement): void {
    const { expression } = statement;
    if (isModuleMarker(expression)) this.edits.push(removal(this.#source, statement.start, statement.end));
    if (expression.type !== 'AssignmentExpression' || expression.operator !== '=') return;
    const target = exportTarget(expression);
    if (target === undefined) return;
    this.repairs.add(target.name === undefined ? 'module.exports was removed' : 'exports were removed');
    this.#assigned(statement, expression, target.name);
  }

  #assigned(statement: ExpressionStatement, { left, right }: AssignmentExpression, name: string | undefined): void {
    const references = right.type === 'Identifier' ? [right.name] : referencedNames(right);
    if (references !== undefined) {
      this.edits.push(removal(this.#source, statement.start, statement.end));
      (name === undefined && right.type === 'Identifier' ? this.defaults : this.names).push(...references);
      return;
    }
    const equals = this.#source.indexOf('=', left.end) + 1;
    this.#bind(statement.start, equals, right.type, name === 'default' ? undefined : name);
  }
}

function isFunctionStatement(node: AnyNode): node is ExpressionStatement {
  return node.type === 'ExpressionStatement' && isFunctionValue(node.expression);
}

export function isFunctionValue(
  node: AnyNode,
): node is NodeOf<'ArrowFunctionExpression' | 'FunctionExpression' | 'FunctionDeclaration'> {
  return (
    node.type === 'ArrowFunctionExpression' || node.type === 'FunctionExpression' || node.type === 'FunctionDeclaration'
  );
}

function isExpression(node: AnyNode): boolean {
  return node.type.endsWith('Expression');
}

function declaredNames(node: NodeOf<'FunctionDeclaration' | 'ClassDeclaration' | 'VariableDeclaration'>): string[] {
  if (node.type !== 'VariableDeclaration') return node.id ? [node.id.name] : [];
  return node.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []));
}

/** `exports.x` gives x, `module.exports` gives no name; undefined for any other target. */
function exportTarget({ left }: AssignmentExpression): { name?: string } | undefined {
  if (left.type !== 'MemberExpression' || left.computed || left.property.type !== 'Identifier') return undefined;
  const { object, property } = left;
  if (isModuleExports(left)) return {};
  if (isModuleExports(object) || isName(object, 'exports')) return { name: property.name };
  return undefined;
}

function isModuleExports(node: AnyNode | { type: 'Super' }): boolean {
  return (
    node.type === 'MemberExpression' &&
    'object' in node &&
    isName(node.object, 'module') &&
    node.property.type === 'Identifier' &&
    node.property.name === 'exports'
  );
}

function isName(node: AnyNode | { type: 'Super' }, name: string): boolean {
  return node.type === 'Identifier' && 'name' in node && node.name === name;
}

/** The names in `{ execute, parse: parseRow }`; undefined for an object with any other value. */
function referencedNames(node: Expression): string[] | undefined {
  if (node.type !== 'ObjectExpression' || node.properties.length === 0) return undefined;
  const names = node.properties.map((property) =>
    property.type === 'Property' && !property.computed && property.value.type === 'Identifier'
      ? property.value.name
      : undefined,
  );
  return names.includes(undefined) ? undefined : names.filter((name) => name !== undefined);
}

/** `Object.defineProperty(exports, "__esModule", …)`, which compilers write. */
function isModuleMarker(node: Expression): boolean {
  const [target, key] = node.type === 'CallExpression' ? node.arguments : [];
  return target !== undefined && isName(target, 'exports') && key?.type === 'Literal' && key.value === '__esModule';
}
