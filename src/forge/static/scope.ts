import type { AnyNode, Expression, Identifier, Pattern, Program, VariableDeclaration } from 'acorn';
import { childrenOf } from './ast.ts';

type NameAccess = 'read' | 'write' | 'typeof';

/** A name the source uses and does not declare. */
interface FreeName {
  node: Identifier;
  access: NameAccess;
}

export interface ScopeAnalysis {
  free: FreeName[];
  /** The nodes of `free`. */
  isFree: ReadonlySet<AnyNode>;
  /** Names declared outside every function. */
  topLevel: ReadonlySet<string>;
  /** For each use of a constant, the expression that the constant was bound to. */
  constants: ReadonlyMap<AnyNode, Expression>;
}

interface LexicalScope {
  names: Set<string>;
  constants: Map<string, Expression>;
  parent: LexicalScope | undefined;
  /** Whether `var` declarations belong to this scope. */
  holdsVar: boolean;
  /** All uses of names; shared by all scopes of a source and resolved after every declaration is known. */
  uses: { node: Identifier; access: NameAccess; scope: LexicalScope }[];
}

/** Resolves every name of a sloppy-mode script: hoisting, blocks, parameters, classes, catch clauses, functions in blocks. */
export function analyseScopes(program: Program): ScopeAnalysis {
  const top: LexicalScope = { names: new Set(), constants: new Map(), parent: undefined, holdsVar: true, uses: [] };
  visitAll(program.body, top);
  const free: FreeName[] = [];
  const constants = new Map<AnyNode, Expression>();
  for (const { node, access, scope } of top.uses) {
    const found = find(scope, node.name);
    const value = found?.constants.get(node.name);
    if (found === undefined) free.push({ node, access });
    else if (value !== undefined) constants.set(node, value);
  }
  return { free, isFree: new Set(free.map(({ node }) => node)), topLevel: top.names, constants };
}

type NodeOf<T extends AnyNode['type']> = Extract<AnyNode, { type: T }>;
type Visitors = { [T in AnyNode['type']]?: (node: NodeOf<T>, scope: LexicalScope) => void };

const ignore = (): void => {};

function visit(node: AnyNode, scope: LexicalScope): void {
  const visitor = VISITORS[node.type] as ((node: AnyNode, scope: LexicalScope) => void) | undefined;
  if (visitor === undefined) visitAll(childrenOf(node), scope);
  else visitor(node, scope);
}

function visitAll(nodes: readonly AnyNode[], scope: LexicalScope): void {
  for (const node of nodes) visit(node, scope);
}

/** Visitors for nodes that declare, open a scope, write, or have identifiers that are not uses. All other nodes are walked. */
const VISITORS: Visitors = {
  Identifier: (node, scope) => use(node, 'read', scope),
  VariableDeclaration: visitDeclaration,
  FunctionDeclaration(node, scope) {
    if (node.id) {
      scope.names.add(node.id.name);
      varScope(scope).names.add(node.id.name);
    }
    visitFunction(node, scope);
  },
  FunctionExpression(node, scope) {
    const outer = openScope(scope);
    if (node.id) outer.names.add(node.id.name);
    visitFunction(node, outer);
  },
  ArrowFunctionExpression: visitFunction,
  ClassDeclaration(node, scope) {
    if (node.id) scope.names.add(node.id.name);
    visitClass(node, scope);
  },
  ClassExpression: visitClass,
  BlockStatement: (node, scope) => visitAll(node.body, openScope(scope)),
  ForStatement: (node, scope) => visitAll(childrenOf(node), openScope(scope)),
  SwitchStatement: (node, scope) => visitAll(childrenOf(node), openScope(scope)),
  StaticBlock: (node, scope) => visitAll(node.body, openScope(scope, true)),
  ForInStatement: visitForEach,
  ForOfStatement: visitForEach,
  CatchClause(node, scope) {
    const inner = openScope(scope);
    if (node.param) declare(node.param, inner, inner);
    visitAll(node.body.body, inner);
  },
  AssignmentExpression(node, scope) {
    assign(node.left, scope, node.operator === '=' ? 'write' : 'read');
    visit(node.right, scope);
  },
  UnaryExpression(node, scope) {
    if (node.operator === 'typeof' && node.argument.type === 'Identifier') use(node.argument, 'typeof', scope);
    else visit(node.argument, scope);
  },
  MemberExpression(node, scope) {
    visit(node.object, scope);
    if (node.computed) visit(node.property, scope);
  },
  Property: visitMember,
  MethodDefinition: visitMember,
  PropertyDefinition: visitMember,
  LabeledStatement: (node, scope) => visit(node.body, scope),
  BreakStatement: ignore,
  ContinueStatement: ignore,
  MetaProperty: ignore,
  ImportDeclaration: ignore,
  ExportAllDeclaration: ignore,
};

function visitMember(node: NodeOf<'Property' | 'MethodDefinition' | 'PropertyDefinition'>, scope: LexicalScope): void {
  if (node.computed) visit(node.key, scope);
  if (node.value) visit(node.value, scope);
}

function visitDeclaration(node: VariableDeclaration, scope: LexicalScope): void {
  const target = node.kind === 'var' ? varScope(scope) : scope;
  for (const { id, init } of node.declarations) {
    declare(id, target, scope);
    if (node.kind === 'const' && id.type === 'Identifier' && init) target.constants.set(id.name, init);
    if (init) visit(init, scope);
  }
}

function visitFunction(
  node: NodeOf<'FunctionDeclaration' | 'FunctionExpression' | 'ArrowFunctionExpression'>,
  scope: LexicalScope,
): void {
  // Defaults of parameters do not see the declarations of the body.
  const outer = openScope(scope);
  if (node.type !== 'ArrowFunctionExpression') outer.names.add('arguments');
  for (const parameter of node.params) declare(parameter, outer, outer);
  const inner = openScope(outer, true);
  if (node.body.type === 'BlockStatement') visitAll(node.body.body, inner);
  else visit(node.body, inner);
}

function visitClass(node: NodeOf<'ClassDeclaration' | 'ClassExpression'>, scope: LexicalScope): void {
  const inner = openScope(scope);
  if (node.id) inner.names.add(node.id.name);
  if (node.superClass) visit(node.superClass, inner);
  visitAll(node.body.body, inner);
}

function visitForEach(node: NodeOf<'ForInStatement' | 'ForOfStatement'>, scope: LexicalScope): void {
  const inner = openScope(scope);
  if (node.left.type === 'VariableDeclaration') visitDeclaration(node.left, inner);
  else assign(node.left, inner, 'write');
  visit(node.right, inner);
  visit(node.body, inner);
}

/** Declares the names of a pattern in `target`; its defaults and computed keys are read in `scope`. */
function declare(pattern: Pattern, target: LexicalScope, scope: LexicalScope): void {
  if (pattern.type === 'Identifier') target.names.add(pattern.name);
  else walkPattern(pattern, scope, (inner) => declare(inner, target, scope));
}

function assign(pattern: Pattern, scope: LexicalScope, access: NameAccess): void {
  if (pattern.type === 'Identifier') use(pattern, access, scope);
  else if (pattern.type === 'MemberExpression') visit(pattern, scope);
  else walkPattern(pattern, scope, (inner) => assign(inner, scope, 'write'));
}

function walkPattern(pattern: Pattern, scope: LexicalScope, each: (inner: Pattern) => void): void {
  if (pattern.type === 'ArrayPattern') {
    for (const element of pattern.elements) if (element) each(element);
  } else if (pattern.type === 'RestElement') each(pattern.argument);
  else if (pattern.type === 'AssignmentPattern') {
    each(pattern.left);
    visit(pattern.right, scope);
  } else if (pattern.type === 'ObjectPattern') {
    for (const property of pattern.properties) {
      if (property.type === 'RestElement') each(property.argument);
      else {
        if (property.computed) visit(property.key, scope);
        each(property.value);
      }
    }
  }
}

function use(node: Identifier, access: NameAccess, scope: LexicalScope): void {
  scope.uses.push({ node, access, scope });
}

function openScope(parent: LexicalScope, holdsVar = false): LexicalScope {
  return { names: new Set(), constants: new Map(), parent, holdsVar, uses: parent.uses };
}

function varScope(scope: LexicalScope): LexicalScope {
  let found = scope;
  while (!found.holdsVar && found.parent !== undefined) found = found.parent;
  return found;
}

function find(scope: LexicalScope, name: string): LexicalScope | undefined {
  let found: LexicalScope | undefined = scope;
  while (found !== undefined && !found.names.has(name)) found = found.parent;
  return found;
}
