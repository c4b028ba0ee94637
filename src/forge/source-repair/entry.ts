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
type NewNode = Extract<AnyNode, { type: 'NewExpression' }>;

/** A value at the top level of a source that may be the entry. */
export interface TopLevelValue {
  name: string;
  node: FunctionNode | ClassNode | ObjectNode | NewNode;
}

/** Names that models give the entry, besides execute and run. */
const USUAL_NAMES: readonly string[] = ['execute', 'run', 'main', 'handler', 'handle', 'tool', 'call', 'invoke'];

/** Finds the function that the author means as the entry; undefined when there is none, or when several are as likely. */
export function findEntry(program: Program, hints: EntryHints): EntryRepair | undefined {
  const values = topLevelValues(program);
  const opaque = opaqueExport(program, values, hints);
  if (opaque !== undefined) return opaque;
  const entry = chooseValue(program, values, hints);
  if (entry === undefined) return undefined;
  const { name, node } = entry;
  if (isFunctionValue(node)) return functionEntry(name, node, hints);
  if (node.type === 'ObjectExpression') return memberEntry(name, name, objectMethods(node), hints);
  if (node.type === 'NewExpression') return memberEntry(name, name, methodsOf(classOf(program, node), program), hints);
  return classEntry(name, node, hints);
}

/** The functions, classes, objects with functions and instances of classes that a source declares outside every function. */
export function topLevelValues(program: Program): TopLevelValue[] {
  return program.body.flatMap((statement) => {
    if (statement.type === 'FunctionDeclaration' || statement.type === 'ClassDeclaration') {
      return [{ name: statement.id.name, node: statement }];
    }
    return declaratorsOf(statement).flatMap(({ id, init }): TopLevelValue[] => {
      if (id.type !== 'Identifier' || !init) return [];
      const value = frozenValue(init, program);
      if (isFunctionValue(value) || value.type === 'ClassExpression') return [{ name: id.name, node: value }];
      const isInstance = value.type === 'NewExpression' && classOf(program, value) !== undefined;
      const isObject = value.type === 'ObjectExpression' && objectMethods(value).length > 0;
      return isInstance || isObject ? [{ name: id.name, node: value }] : [];
    });
  });
}

type Declarator = Extract<AnyNode, { type: 'VariableDeclarator' }>;

function declaratorsOf(statement: AnyNode): Declarator[] {
  return statement.type === 'VariableDeclaration' ? statement.declarations : [];
}

/** The value that a name of the top level is declared with. */
function declaredValue(program: Program, name: string): AnyNode | undefined {
  const declarators = program.body.flatMap(declaratorsOf);
  return declarators.find(({ id }) => id.type === 'Identifier' && id.name === name)?.init ?? undefined;
}

/** The object that `Object.freeze` and its like return; any other value itself. */
function frozenValue(value: AnyNode, program: Program): AnyNode {
  if (value.type !== 'CallExpression' || value.callee.type !== 'MemberExpression') return value;
  const { object, property } = value.callee;
  const [frozen] = value.arguments;
  const isFreeze = property.type === 'Identifier' && ['freeze', 'seal', 'preventExtensions'].includes(property.name);
  if (!isFreeze || object.type !== 'Identifier' || object.name !== 'Object' || frozen === undefined) return value;
  return (frozen.type === 'Identifier' ? declaredValue(program, frozen.name) : frozen) ?? value;
}

/** The class of an instance, when the source declares it outside every function. */
function classOf(program: Program, { callee }: NewNode): ClassNode | undefined {
  return callee.type === 'ClassExpression' ? callee : classNamed(program, callee);
}

function classNamed(program: Program, node: AnyNode | { type: 'Super' }): ClassNode | undefined {
  if (node.type !== 'Identifier' || !('name' in node)) return undefined;
  const { name } = node;
  const declared = program.body.find((part) => part.type === 'ClassDeclaration' && part.id.name === name);
  const value = declared ?? declaredValue(program, name);
  return value?.type === 'ClassDeclaration' || value?.type === 'ClassExpression' ? value : undefined;
}

/**
 * The entry for an exported value that only a run can show: the result of a call, or an instance of a class that the source does not
 * declare.
 */
function opaqueExport(
  program: Program,
  values: readonly TopLevelValue[],
  { exported }: EntryHints,
): EntryRepair | undefined {
  const [name, second] = exported;
  if (name === undefined || second !== undefined || values.some((value) => value.name === name)) return undefined;
  const type = declaredValue(program, name)?.type;
  if (type !== 'CallExpression' && type !== 'NewExpression') return undefined;
  const method = `typeof ${name}.execute === 'function' ? ${name}.execute(input) : ${name}.run(input)`;
  return {
    append: `const execute = typeof ${name} === 'function' ? ${name} : (input) => (${method});`,
    repair: 'the exported value, or its method execute or run, was taken as execute',
  };
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
  const made = node.body.body.find((part) => part.type === 'MethodDefinition' && part.kind === 'constructor');
  if (made?.type === 'MethodDefinition' && made.value.params.length > 0) return undefined;
  const methods = classMethods(node);
  const isStatic = chooseMethod(methods, hints)?.static === true;
  return memberEntry(name, isStatic ? name : `new ${name}()`, methods, hints);
}

interface ClassMethod extends Method {
  static: boolean;
}

function classMethods(node: ClassNode): ClassMethod[] {
  return node.body.body.flatMap((part) =>
    part.type === 'MethodDefinition' && part.kind === 'method' && !part.computed && part.key.type === 'Identifier'
      ? [{ name: part.key.name, static: part.static, node: part.value }]
      : [],
  );
}

/** The methods of an instance, those of its class before those of the classes that it extends. */
function methodsOf(declared: ClassNode | undefined, program: Program): Method[] {
  const methods: Method[] = [];
  const seen = new Set<ClassNode>();
  for (let node = declared; node !== undefined && !seen.has(node); ) {
    seen.add(node);
    methods.push(...classMethods(node).filter((method) => !method.static));
    node = node.superClass ? classNamed(program, node.superClass) : undefined;
  }
  return methods;
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
