import type { AnyNode } from 'acorn';
import { childrenOf } from '../static/ast.ts';

type FunctionNode = Extract<
  AnyNode,
  { type: 'ArrowFunctionExpression' | 'FunctionExpression' | 'FunctionDeclaration' }
>;

/** Names of a parameter that holds the whole input. */
const WHOLE_INPUT: ReadonlySet<string> = new Set([
  'input',
  'inputs',
  'args',
  'params',
  'parameters',
  'options',
  'opts',
  'arguments_',
]);

/**
 * The names of the parameters, when the function takes the members of the input one by one: `add(a, b)` for an input
 * `{a, b}`. Undefined when it takes the input as a whole, as `execute` does.
 */
export function positionalParameters(node: FunctionNode, properties: readonly string[]): string[] | undefined {
  const names = node.params.map((parameter) => {
    const target = parameter.type === 'AssignmentPattern' ? parameter.left : parameter;
    return target.type === 'Identifier' ? target.name : undefined;
  });
  const known = names.filter((name) => name !== undefined && properties.includes(name));
  if (known.length === 0 || known.length !== names.length) return undefined;
  const [first = ''] = known;
  if (names.length === 1 && (WHOLE_INPUT.has(first) || readsMember(node.body, first, properties))) return undefined;
  return known.filter((name) => name !== undefined);
}

/** `({ a, b }) => add(a, b)` */
export function callOf(callee: string, parameters: readonly string[]): string {
  const list = parameters.join(', ');
  return `({ ${list} }) => ${callee}(${list})`;
}

/** Whether the code reads a member of the input from the name: `text.text`, or `const { text } = text`. */
function readsMember(body: AnyNode, name: string, properties: readonly string[]): boolean {
  const stack: AnyNode[] = [body];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node.type === 'MemberExpression' && isNamed(node.object, name) && node.property.type === 'Identifier') {
      if (properties.includes(node.property.name)) return true;
    }
    if (node.type === 'VariableDeclarator' && node.init && isNamed(node.init, name)) {
      if (node.id.type === 'ObjectPattern') return true;
    }
    stack.push(...childrenOf(node));
  }
  return false;
}

function isNamed(node: AnyNode | { type: 'Super' }, name: string): boolean {
  return node.type === 'Identifier' && 'name' in node && node.name === name;
}
