import type { AnyNode, Program } from 'acorn';
import { fullAncestor } from 'acorn-walk';
import type { ToolApi } from '../../api/v1alpha1/common.ts';
import { printable } from '../../lib/printable.ts';
import { foldText } from './fold.ts';
import { UNAVAILABLE_NAMES, API_NAMES, BANNED_NAMES, DANGEROUS_MEMBERS, LANGUAGE_NAMES } from './names.ts';
import type { SourceProblem } from './parse.ts';
import { analyseScopes, type ScopeAnalysis } from './scope.ts';

/** The result of the static check of a source: banned code, warnings and the host functions that it uses. */
export interface StaticFindings {
  problems: SourceProblem[];
  warnings: SourceProblem[];
  /** The first use of each host function. */
  uses: ReadonlyMap<ToolApi, ApiUse>;
  definesEntry: boolean;
}

export interface ApiUse {
  line: number;
  column: number;
  /** The used name, such as `Date.now`. */
  name: string;
}

const ENTRIES = ['execute', 'run'];
const COMPARISONS = ['===', '!==', '==', '!='];

export function findProblems(program: Program): StaticFindings {
  const checker = new RuleChecker(analyseScopes(program));
  fullAncestor(program, (node, _state, ancestors) => checker.visit(node as AnyNode, ancestors as AnyNode[]));
  checker.names();
  return checker.findings();
}

class RuleChecker {
  readonly #scopes: ScopeAnalysis;
  readonly #problems: SourceProblem[] = [];
  readonly #warnings: SourceProblem[] = [];
  readonly #uses = new Map<ToolApi, ApiUse>();
  readonly #assigned = new Set<string>();
  /** Uses of `globalThis` and `crypto` that the member rule already checked. */
  readonly #checkedGlobals = new Set<AnyNode>();

  constructor(scopes: ScopeAnalysis) {
    this.#scopes = scopes;
  }

  findings(): StaticFindings {
    const { topLevel } = this.#scopes;
    return {
      problems: bySourceOrder(this.#problems),
      warnings: bySourceOrder(this.#warnings),
      uses: this.#uses,
      definesEntry: ENTRIES.some((name) => topLevel.has(name) || this.#assigned.has(name)),
    };
  }

  visit(node: AnyNode, ancestors: readonly AnyNode[]): void {
    if (node.type === 'MemberExpression') this.#member(node, ancestors);
    else if (node.type === 'ObjectPattern') this.#pattern(node);
    else if (node.type === 'Property') this.#property(node);
    else if (node.type === 'CallExpression' || node.type === 'NewExpression') this.#call(node);
    else if (node.type === 'AwaitExpression' && !ancestors.some(isFunction)) {
      this.#report(node, 'await outside a function is not allowed; move it into execute, and make execute async');
    } else this.#statement(node);
  }

  #statement(node: AnyNode): void {
    const message = FORBIDDEN_NODES[node.type];
    if (message !== undefined) this.#report(node, message);
    if (node.type === 'MetaProperty' && node.meta.name === 'import')
      this.#report(node, 'import.meta is banned; a tool is not a module');
  }

  /** Checks every undeclared name. Must run last, because the source may read a name before the place that assigns it. */
  names(): void {
    const { free } = this.#scopes;
    for (const { node, access } of free) if (access === 'write') this.#assigned.add(node.name);
    const warned = new Set<string>();
    for (const { node, access } of free) {
      if (access === 'typeof') continue;
      if (node.name === 'globalThis') {
        if (!this.#checkedGlobals.has(node))
          this.#report(node, 'globalThis is not allowed except as globalThis.NAME; use the name itself');
      } else if (access === 'write') this.#undeclaredWrite(node, warned);
      else if (!this.#checkedGlobals.has(node)) this.#freeRead(node, node.name);
    }
  }

  #undeclaredWrite(node: Extract<AnyNode, { type: 'Identifier' }>, warned: Set<string>): void {
    const banned = BANNED_NAMES.get(node.name);
    if (banned !== undefined) this.#report(node, `${node.name}: ${banned}`);
    else if (!warned.has(node.name) && !ENTRIES.includes(node.name)) {
      warned.add(node.name);
      this.#warn(node, `"${node.name}" is assigned but never declared; add let`);
    }
  }

  #freeRead(node: AnyNode, name: string): void {
    const api = API_NAMES.get(name);
    const banned = BANNED_NAMES.get(name);
    if (banned !== undefined) this.#report(node, `${name} is banned: ${banned}`);
    else if (api !== undefined && !this.#assigned.has(name)) this.#use(node, api, name);
    else if (api === undefined && !LANGUAGE_NAMES.has(name) && !this.#assigned.has(name)) {
      const advice = UNAVAILABLE_NAMES.get(name);
      this.#report(
        node,
        `"${printable(name, 60)}" is not defined${advice === undefined ? '; declare it or remove it' : `; ${advice}`}`,
      );
    }
  }

  #member(node: Extract<AnyNode, { type: 'MemberExpression' }>, ancestors: readonly AnyNode[]): void {
    const parent = ancestors.at(-2);
    const name = this.#memberName(node);
    if (this.#isGlobalObject(node.object, ancestors)) this.#globalMember(node, name, parent);
    if (this.#isFreeName(node.object, 'fs')) this.#fileMember(node, name);
    if (name === undefined) return;
    this.#effect(node, name);
    if (!DANGEROUS_MEMBERS.has(name) || node.object.type === 'Super') return;
    if (!node.computed && (name === 'prototype' || (name === 'constructor' && isHarmless(node, parent)))) return;
    const shown = node.computed ? `["${name}"]` : `.${name}`;
    this.#report(node, `${shown} is banned: it leads from data to the engine; use plain members`);
  }

  /** Records a use of the clock or of randomness. */
  #effect(node: Extract<AnyNode, { type: 'MemberExpression' }>, name: string): void {
    const { object } = node;
    const owner = EFFECT_OWNERS.find((known) => this.#isFreeName(object, known));
    const api = owner === undefined ? undefined : EFFECTS.get(`${owner}.${name}`);
    if (owner === undefined || api === undefined) return;
    this.#use(node, api, `${owner}.${name}`);
    if (owner === 'crypto') this.#checkedGlobals.add(object as AnyNode);
  }

  #use(node: AnyNode, api: ToolApi, name: string): void {
    if (!this.#uses.has(api)) this.#uses.set(api, { ...locationOf(node), name });
  }

  #globalMember(node: AnyNode, name: string | undefined, parent: AnyNode | undefined): void {
    if (node.type === 'MemberExpression') this.#checkedGlobals.add(node.object);
    if (name === undefined) this.#report(node, 'a computed member of the global object is banned; use the name itself');
    else if (parent?.type === 'AssignmentExpression' && parent.left === node) this.#assigned.add(name);
    else this.#freeRead(node, name);
  }

  #fileMember(node: AnyNode, name: string | undefined): void {
    if (name === 'readFile' || name === 'promises') return;
    this.#report(node, `fs.${printable(name ?? '[…]', 40)} is banned: a tool may only read, with fs.readFile(path)`);
  }

  #pattern(node: Extract<AnyNode, { type: 'ObjectPattern' }>): void {
    for (const property of node.properties) {
      const name = property.type === 'Property' ? this.#keyName(property) : undefined;
      if (name === undefined || !DANGEROUS_MEMBERS.has(name)) continue;
      this.#report(property, `taking ${name} out of a value is banned: it leads from data to the engine`);
    }
  }

  #property(node: Extract<AnyNode, { type: 'Property' }>): void {
    if (node.computed || node.shorthand || this.#keyName(node) !== '__proto__' || isNull(node.value)) return;
    this.#report(node, '__proto__ is banned except as null');
  }

  #keyName({ computed, key }: Pick<Extract<AnyNode, { type: 'Property' }>, 'computed' | 'key'>): string | undefined {
    if (!computed && key.type === 'Identifier') return key.name;
    return foldText(key, this.#scopes.constants);
  }

  #call(node: Extract<AnyNode, { type: 'CallExpression' | 'NewExpression' }>): void {
    const { callee } = node;
    if (this.#isFreeName(callee, 'Date') && (node.type === 'CallExpression' || node.arguments.length === 0)) {
      this.#use(node, 'clock', node.type === 'CallExpression' ? 'Date()' : 'new Date()');
    }
    if (callee.type !== 'MemberExpression') return;
    if (!this.#isFreeName(callee.object, 'Reflect') && !this.#isFreeName(callee.object, 'Object')) return;
    for (const argument of node.arguments) {
      const text = foldText(argument, this.#scopes.constants);
      if (text !== undefined && text !== 'prototype' && DANGEROUS_MEMBERS.has(text)) {
        this.#report(argument, `reaching "${text}" by reflection is banned`);
      }
    }
  }

  #memberName(node: Extract<AnyNode, { type: 'MemberExpression' }>): string | undefined {
    if (node.computed) return foldText(node.property, this.#scopes.constants);
    return node.property.type === 'Identifier' ? node.property.name : undefined;
  }

  /** Whether the node is `globalThis`, or `this` outside functions and class parts. */
  #isGlobalObject(node: AnyNode | { type: 'Super' }, ancestors: readonly AnyNode[]): boolean {
    if (node.type === 'ThisExpression') {
      return !ancestors.some(
        (outer) => (isFunction(outer) && outer.type !== 'ArrowFunctionExpression') || isClassPart(outer),
      );
    }
    return this.#isFreeName(node, 'globalThis');
  }

  #isFreeName(node: AnyNode | { type: 'Super' }, name: string): boolean {
    return node.type === 'Identifier' && 'name' in node && node.name === name && this.#scopes.isFree.has(node);
  }

  #report(node: AnyNode, message: string): void {
    this.#problems.push({ ...locationOf(node), message: printable(message, 240) });
  }

  #warn(node: AnyNode, message: string): void {
    this.#warnings.push({ ...locationOf(node), message: printable(message, 240) });
  }
}

/** The members that read the clock or are random, with the host function that a tool declares for them. */
const EFFECTS: ReadonlyMap<string, ToolApi> = new Map([
  ['Date.now', 'clock'],
  ['performance.now', 'clock'],
  ['performance.timeOrigin', 'clock'],
  ['Temporal.Now', 'clock'],
  ['Math.random', 'random'],
  ['crypto.randomUUID', 'random'],
]);
const EFFECT_OWNERS = ['Date', 'performance', 'Temporal', 'Math', 'crypto'];

const FORBIDDEN_NODES: Readonly<Record<string, string>> = {
  WithStatement: 'with is banned: it hides what a name means; write the object before the member',
  ImportExpression: 'import() is banned; a tool cannot load modules',
  ImportDeclaration: 'import is banned; a tool cannot load modules',
  ExportNamedDeclaration: 'export is not allowed; define function execute(input) without it',
  ExportDefaultDeclaration: 'export is not allowed; define function execute(input) without it',
  ExportAllDeclaration: 'export is not allowed; define function execute(input) without it',
  DebuggerStatement: 'debugger is not allowed; remove it',
};

/** Comparing constructors and reading the name of one is common and harmless. */
function isHarmless(node: AnyNode, parent: AnyNode | undefined): boolean {
  if (parent?.type === 'BinaryExpression') return COMPARISONS.includes(parent.operator);
  return (
    parent?.type === 'MemberExpression' &&
    parent.object === node &&
    !parent.computed &&
    parent.property.type === 'Identifier' &&
    parent.property.name === 'name'
  );
}

function isFunction(node: AnyNode): boolean {
  return (
    node.type === 'FunctionDeclaration' || node.type === 'FunctionExpression' || node.type === 'ArrowFunctionExpression'
  );
}

function isClassPart(node: AnyNode): boolean {
  return node.type === 'PropertyDefinition' || node.type === 'StaticBlock';
}

function isNull(node: AnyNode): boolean {
  return node.type === 'Literal' && node.value === null && node.raw === 'null';
}

function locationOf(node: AnyNode): { line: number; column: number } {
  return { line: node.loc?.start.line ?? 1, column: node.loc?.start.column ?? 0 };
}

function bySourceOrder(problems: SourceProblem[]): SourceProblem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}
