import type { AnyNode, Expression, Identifier, Pattern, Program, VariableDeclaration } from 'acorn';
import { childrenOf } from './ast.ts';

type Access = 'read' | 'write' | 'typeof';

/** A name the source uses and does not declare. */
interface FreeName {
  node: Identifier;
  access: Access;
}

export interface ScopeAnalysis {
  free: FreeName[];
  /** The same, by node. */
  isFree: ReadonlySet<AnyNode>;
  /** Names declared outside every function. */
  topLevel: ReadonlySet<string>;
  /** What a name was bound to, for constants. */
  constants: ReadonlyMap<AnyNode, Expression>;
}

interface Scope {
  names: Set<string>;
  constants: Map<string, Expression>;
  parent: Scope | undefined;
  /** Where `var` goes. */
  holdsVar: boolean;
  /** Uses found anywhere; shared by all scopes of a source, resolved when every declaration is known. */
  uses: { node: Identifier; access: Access; scope: Scope }[];
}

/** Resolves every name of a sloppy-mode script: hoisting, blocks, parameters, classes, catch clauses, functions in blocks. */
export function analyseScopes(program: Program): ScopeAnalysis {
  const top: Scope = { names: new Set(), constants: new Map(), parent: undefined, holdsVar: true, uses: [] };
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
type Visitors = { [T in AnyNode['type']]?: (node: NodeOf<T>, scope: Scope) => void };

const nothing = (): void => {};

function visit(node: AnyNode, scope: Scope): void {
  const visitor = VISITORS[node.type] as ((node: AnyNode, scope: Scope) => void) | undefined;
  if (visitor === undefined) visitAll(childrenOf(node), scope);
  else visitor(node, scope);
}

function visitAll(nodes: readonly AnyNode[], scope: Scope): void {
  for (const node of nodes) visit(node, scope);
}

/** Nodes that declare, open a scope, write, or hold identifiers that are no uses. All others are walked through. */
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
  BreakStatement: nothing,
  ContinueStatement: nothing,
  MetaProperty: nothing,
  ImportDeclaration: nothing,
  ExportAllDeclaration: nothing,
};

function visitMember(node: NodeOf<'Property' | 'MethodDefinition' | 'PropertyDefinition'>, scope: Scope): void {
  if (node.computed) visit(node.key, scope);
  if (node.value) visit(node.value, scope);
}

function visitDeclaration(node: VariableDeclaration, scope: Scope): void {
  const target = node.kind === 'var' ? varScope(scope) : scope;
  for (const { id, init } of node.declarations) {
    declare(id, target, scope);
    if (node.kind === 'const' && id.type === 'Identifier' && init) target.constants.set(id.name, init);
    if (init) visit(init, scope);
  }
}

function visitFunction(
  node: NodeOf<'FunctionDeclaration' | 'FunctionExpression' | 'ArrowFunctionExpression'>,
  scope: Scope,
): void {
  const inner = openScope(scope, true);
  if (node.type !== 'ArrowFunctionExpression') inner.names.add('arguments');
  for (const parameter of node.params) declare(parameter, inner, inner);
  if (node.body.type === 'BlockStatement') visitAll(node.body.body, inner);
  else visit(node.body, inner);
}

function visitClass(node: NodeOf<'ClassDeclaration' | 'ClassExpression'>, scope: Scope): void {
  const inner = openScope(scope);
  if (node.id) inner.names.add(node.id.name);
  if (node.superClass) visit(node.superClass, inner);
  visitAll(node.body.body, inner);
}

function visitForEach(node: NodeOf<'ForInStatement' | 'ForOfStatement'>, scope: Scope): void {
  const inner = openScope(scope);
  if (node.left.type === 'VariableDeclaration') visitDeclaration(node.left, inner);
  else assign(node.left, inner, 'write');
  visit(node.right, inner);
  visit(node.body, inner);
}

/** Declares the names of a pattern; its defaults and computed keys are read where it stands. */
function declare(pattern: Pattern, target: Scope, scope: Scope): void {
  if (pattern.type === 'Identifier') target.names.add(pattern.name);
  else walkPattern(pattern, scope, (inner) => declare(inner, target, scope));
}

function assign(pattern: Pattern, scope: Scope, access: Access): void {
  if (pattern.type === 'Identifier') use(pattern, access, scope);
  else if (pattern.type === 'MemberExpression') visit(pattern, scope);
  else walkPattern(pattern, scope, (inner) => assign(inner, scope, 'write'));
}

function walkPattern(pattern: Pattern, scope: Scope, each: (inner: Pattern) => void): void {
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

function use(node: Identifier, access: Access, scope: Scope): void {
  scope.uses.push({ node, access, scope });
}

function openScope(parent: Scope, holdsVar = false): Scope {
  return { names: new Set(), constants: new Map(), parent, holdsVar, uses: parent.uses };
}

function varScope(scope: Scope): Scope {
  let found = scope;
  while (!found.holdsVar && found.parent !== undefined) found = found.parent;
  return found;
}

function find(scope: Scope, name: string): Scope | undefined {
  let found: Scope | undefined = scope;
  while (found !== undefined && !found.names.has(name)) found = found.parent;
  return found;
}
