import type { AnyNode, Program } from 'acorn';
import { childrenOf } from '../static/ast.ts';
import { isFunctionValue } from './exports.ts';
import { callOf, positionalParameters } from './parameters.ts';

/** The repair that gives a source its entry function: text to append. */
export interface EntryRepair {
  append: string;
  repair: string;
}

/** Facts of the request that help to find the entry. */
export interface EntryHints {
  toolName: string;
  /** Local names that the source exported, the default first. */
  exported: readonly string[];
  /** Members of the input. */
  properties: readonly string[];
}

type FunctionNode = Extract<
  AnyNode,
  { type: 'ArrowFunctionExpression' | 'FunctionExpression' | 'FunctionDeclaration' }
>;
type ClassNode = Extract<AnyNode, { type: 'ClassDeclaration' | 'ClassExpression' }>;
type ObjectNode = Extract<AnyNode, { type: 'ObjectExpression' }>;

/** A value at the top level of a source that may be the entry. */
export interface TopLevelValue {
  name: string;
  node: FunctionNode | ClassNode | ObjectNode;
}

/** Names that models give the entry, besides execute and run. */
const USUAL_NAMES: readonly string[] = ['execute', 'run', 'main', 'handler', 'handle', 'tool', 'call', 'invoke'];

/** Finds the function that the author means as the entry; undefined when there is none, or when several are as likely. */
export function findEntry(program: Program, hints: EntryHints): EntryRepair | undefined {
  const values = topLevelValues(program);
  const entry = chooseValue(program, values, hints);
  if (entry === undefined) return undefined;
  if (isFunctionValue(entry.node)) return functionEntry(entry.name, entry.node, hints);
  return entry.node.type === 'ObjectExpression'
    ? memberEntry(entry.name, entry.name, objectMethods(entry.node), hints)
    : classEntry(entry.name, entry.node, hints);
}

/** The functions, classes and objects with functions that a source declares outside every function. */
export function topLevelValues(program: Program): TopLevelValue[] {
  return program.body.flatMap((statement) => {
    if (statement.type === 'FunctionDeclaration' || statement.type === 'ClassDeclaration') {
      return [{ name: statement.id.name, node: statement }];
    }
    if (statement.type !== 'VariableDeclaration') return [];
    return statement.declarations.flatMap(({ id, init }): TopLevelValue[] => {
      if (id.type !== 'Identifier' || !init) return [];
      if (isFunctionValue(init) || init.type === 'ClassExpression') return [{ name: id.name, node: init }];
      return init.type === 'ObjectExpression' && objectMethods(init).length > 0 ? [{ name: id.name, node: init }] : [];
    });
  });
}

function chooseValue(
  program: Program,
  values: readonly TopLevelValue[],
  { exported, toolName }: EntryHints,
): TopLevelValue | undefined {
  const byName = (test: (name: string) => boolean): TopLevelValue[] => values.filter(({ name }) => test(name));
  const usage = countNames(program);
  const choices = [
    byName((name) => exported.includes(name) && exported.indexOf(name) === 0 && exported.length === 1),
    byName((name) => plain(name) === plain(toolName)),
    byName((name) => USUAL_NAMES.includes(name)),
    byName((name) => exported[0] === name),
    values,
    // Helpers are called by the entry, which nothing calls.
    byName((name) => usage.get(name) === 1),
  ];
  return choices.find((choice) => choice.length === 1)?.[0];
}

function functionEntry(name: string, node: FunctionNode, { properties }: EntryHints): EntryRepair {
  const positional = positionalParameters(node, properties);
  if (positional === undefined) {
    return { append: `const execute = ${name};`, repair: `the function ${name} was taken as execute` };
  }
  return {
    append: `const execute = ${callOf(name, positional)};`,
    repair: `the function ${name} was taken as execute; its parameters are the members of the input`,
  };
}

function classEntry(name: string, node: ClassNode, hints: EntryHints): EntryRepair | undefined {
  const methods = node.body.body.filter((part) => part.type === 'MethodDefinition' && part.kind === 'method');
  const made = node.body.body.find((part) => part.type === 'MethodDefinition' && part.kind === 'constructor');
  if (made?.type === 'MethodDefinition' && made.value.params.length > 0) return undefined;
  const named = methods.flatMap((method) =>
    method.type === 'MethodDefinition' && !method.computed && method.key.type === 'Identifier'
      ? [{ name: method.key.name, static: method.static, node: method.value }]
      : [],
  );
  const isStatic = chooseMethod(named, hints)?.static === true;
  return memberEntry(name, isStatic ? name : `new ${name}()`, named, hints);
}

interface Method {
  name: string;
  node: FunctionNode;
}

function memberEntry(
  name: string,
  receiver: string,
  methods: readonly Method[],
  hints: EntryHints,
): EntryRepair | undefined {
  const method = chooseMethod(methods, hints);
  if (method === undefined) return undefined;
  const positional = positionalParameters(method.node, hints.properties);
  const called = `${receiver}.${method.name}`;
  const entry = positional === undefined ? `(input) => ${called}(input)` : callOf(called, positional);
  return { append: `const execute = ${entry};`, repair: `the method ${method.name} of ${name} was taken as execute` };
}

function chooseMethod<M extends Method>(methods: readonly M[], { toolName }: EntryHints): M | undefined {
  const usual = USUAL_NAMES.map((name) => methods.find((method) => method.name === name)).find((found) => found);
  return (
    usual ??
    methods.find(({ name }) => plain(name) === plain(toolName)) ??
    (methods.length === 1 ? methods[0] : undefined)
  );
}

function objectMethods(node: ObjectNode): Method[] {
  return node.properties.flatMap((property) =>
    property.type === 'Property' &&
    !property.computed &&
    property.key.type === 'Identifier' &&
    isFunctionValue(property.value)
      ? [{ name: property.key.name, node: property.value }]
      : [],
  );
}

/** `csvRows` and `csv_rows` are the same name. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}

/** How often each name occurs in a source, its declaration included. Not recursive. */
export function countNames(program: Program): Map<string, number> {
  const counts = new Map<string, number>();
  const stack: AnyNode[] = [program];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node.type === 'Identifier') counts.set(node.name, (counts.get(node.name) ?? 0) + 1);
    stack.push(...childrenOf(node));
  }
  return counts;
}
